"""Key skew: partitions that get much more than their share of a pipe's events, and the keys that cause it.

The counts of partitions are exact, from the ledger. Keys are counted over the newest records of the fullest
partition: a key that dominates a partition also dominates any sample of it.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from pyroaring import BitMap64

from dataplane.ledger.facts import ACKED, INGEST, Fact
from dataplane.ledger.units import partition_base, place_of
from dataplane.spec import PipeSpec, parse_pipe_spec
from mgmt.cells.queries.cells import topics_of
from mgmt.ledger.key_masks import shown_key
from mgmt.ledger.queries.bucket_range import BucketRange
from mgmt.messages.queries.records import newest_messages
from mgmt.models import FactRow, Pipe, PipeRevision

FEWEST: Final = 1_000  # events; with fewer, no partition is reported
HOT: Final = 2.0  # times the fair share
HEAVY: Final = 0.2  # of the records of a partition
KEYS_READ: Final = 2_000


@dataclass(frozen=True)
class HotPartition:
    """Partition that gets `share` of the pipe's events, where `fair` would be its equal part; both 0 to 1."""

    partition: int
    generation: int
    share: float
    fair: float


@dataclass(frozen=True)
class HeavyKey:
    """Key with its share (0 to 1) of the newest records of its partition; records without a key count as ""."""

    key: str
    share: float


def heaviest_keys(pipe: Pipe, span: BucketRange, partitions: int) -> HotPartition | None:
    """Return the fullest partition of a range, if it gets much more than its share."""
    facts = FactRow.objects.filter(pipe_id=pipe.id, node=INGEST, fact=Fact.SENT, detail=ACKED)
    rows = facts.filter(bucket__range=(span.first, span.last)).values_list("positions", flat=True)
    return judged(BitMap64.union(BitMap64(), *(BitMap64.deserialize(bytes(row)) for row in rows)), partitions)


def judged(positions: BitMap64, partitions: int) -> HotPartition | None:
    """Return the fullest partition of the newest generation if its share is at least HOT times the fair one. Pure."""
    if len(positions) < FEWEST or partitions < 2:
        return None
    generation = place_of(positions.max()).generation
    counts = {partition: _count(positions, generation, partition) for partition in range(partitions)}
    partition, most = max(counts.items(), key=lambda found: found[1])
    share, fair = most / max(1, sum(counts.values())), 1 / partitions
    return HotPartition(partition, generation, share, fair) if share >= HOT * fair else None


def heavy_keys(pipe: Pipe, hot: HotPartition) -> list[HeavyKey]:
    """Return the keys that dominate the partition. Raises RecordUnavailableError, Topic.DoesNotExist."""
    topic = topics_of([pipe.id], "ingest").get(generation=hot.generation)
    return newest_heavy_keys(pipe, topic.name, hot.partition)


def newest_heavy_keys(pipe: Pipe, topic: str, partition: int) -> list[HeavyKey]:
    """Return the keys that dominate the newest records of a partition. Raises RecordUnavailableError."""
    newest = newest_messages(topic, [partition], KEYS_READ)
    return heavy((message.key() for message in newest), pipe.id)


def shown_keys(keys: Iterable[HeavyKey], spec: PipeSpec) -> list[HeavyKey]:
    """Return the keys as they may be shown: masked if the pipe masks the value that they come from."""
    return [replace(one, key=shown_key(one.key, spec)) for one in keys]


def live_spec(pipe: Pipe) -> PipeSpec:
    """Return the spec of the live revision, or of the newest one if none is live yet."""
    live = pipe.revisions.filter(state=PipeRevision.State.LIVE).first() or pipe.revisions.latest("number")
    return parse_pipe_spec(live.spec)


def heavy(keys: Iterable[bytes | None], pipe_id: str) -> list[HeavyKey]:
    """Return the heavy keys of a sample, heaviest first. Other pipes of the cell share the partition. Pure."""
    counted: Mapping[str, int] = Counter(_text(key, pipe_id) for key in keys)
    whole = sum(counted.values())
    found = [HeavyKey(key, count / whole) for key, count in counted.items() if key and count >= HEAVY * whole]
    return sorted(found, key=lambda one: (-one.share, one.key))


def _count(positions: BitMap64, generation: int, partition: int) -> int:
    low, high = partition_base(generation, partition), partition_base(generation, partition + 1)
    return positions.rank(high - 1) - (positions.rank(low - 1) if low else 0)


def _text(key: bytes | None, pipe_id: str) -> str:
    """Return the key without its pipe prefix; "" for records without a key and for those of other pipes."""
    owner, _, value = (key or b"").partition(b"\0")
    return value.decode("utf-8", "replace") if owner == pipe_id.encode() else ""
