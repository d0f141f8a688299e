"""One job of a shadow run: what its tasks read and compare, and their results."""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct, field

from dataplane.names import PartitionKey
from dataplane.plan.masked_fields import MaskedField
from dataplane.replay.ranges import OffsetRange
from dataplane.shadow.slices import size_of
from dataplane.spec import PipeSpec
from dataplane.tables.records import ShadowRecord
from dataplane.tables.shadows import ShadowSample, UnitKind

MAX_TIME_US: Final = (1 << 63) - 1


class ShadowJob(Struct, frozen=True):
    """Events of a job, and what is needed to run both plans.

    live:       spec of the live revision
    salt:       the tenant's; b"" if no step of either plan needs it
    generation: of the ingest topic
    ranges:     offsets of the ingest topic, at most one range of each partition
    sent_from:  by partition of the egress topic, the offset from which deliveries of these events may be
    last_ms:    when the last of these events was stored, or later; milliseconds since 1970
    masks:      by destination, masked values in its bodies
    """

    record: ShadowRecord
    live: PipeSpec
    salt: bytes
    tenant: str
    generation: int
    ranges: list[OffsetRange]
    sent_from: dict[PartitionKey, int]
    last_ms: int
    masks: dict[str, frozenset[MaskedField]]

    @property
    def until_us(self) -> int:
        """The end of the ingest times (exclusive)."""
        return self.record.until_us or MAX_TIME_US

    @property
    def may_be_smaller(self) -> bool:
        """True if the job can be repeated with fewer records."""
        return size_of(self.ranges) > 1


class JobPart(Struct, frozen=True):
    """Input of one reading task: some partitions of both topics."""

    number: int
    ranges: list[OffsetRange]
    sent_from: dict[PartitionKey, int]


class PartRead(Struct):
    """Result of reading a part.

    read:      records of the ingest topic
    until_us:  by partition of the ingest topic, the ingest time of the last record
    expired_until_us: ingest time of the first event after a gap that retention has left; 0 without a gap
    events:    events that were passed on; `size_bytes`: their bodies and those of the deliveries
    events_s, sent_s: time for reading events, and for reading deliveries
    is_cut:    True if the time for reading deliveries was over before their end
    is_large:  True if it ended early, because it had passed on too much; the job does not count
    error:     reason why the job does not count, for the log
    crashed:   True if the process of the task has ended several times
    """

    read: int = 0
    until_us: dict[PartitionKey, int] = field(default_factory=dict)
    expired_until_us: int = 0
    events: int = 0
    size_bytes: int = 0
    events_s: float = 0.0
    sent_s: float = 0.0
    is_cut: bool = False
    is_large: bool = False
    error: str = ""
    crashed: bool = False


class PartComparison(Struct):
    """Result of comparing some of the events. Counts as in dataplane.tables.shadows.ShadowProgress.

    waits:   reason why the plans cannot run on this host yet, for people; the job does not count
    took_s:  time for comparing
    is_large: True if it ended early, because it took too long; the job does not count
    error, crashed: as in PartRead
    """

    events: int = 0
    units: dict[str, dict[UnitKind, int]] = field(default_factory=dict)
    fields: dict[str, dict[str, int]] = field(default_factory=dict)
    rejected: dict[str, int] = field(default_factory=dict)
    samples: list[ShadowSample] = field(default_factory=list)
    cost_events: int = 0
    live_cpu_us: int = 0
    shadow_cpu_us: int = 0
    waits: str = ""
    took_s: float = 0.0
    is_large: bool = False
    error: str = ""
    crashed: bool = False


def parts_of(job: ShadowJob, count: int) -> list[JobPart]:
    """Return the parts of a job for `count` tasks, each with about as many partitions of both topics."""
    sent = list(job.sent_from.items())
    return [JobPart(number, job.ranges[number::count], dict(sent[number::count])) for number in range(count)]


def range_of_partition(ranges: list[OffsetRange]) -> Mapping[int, OffsetRange]:
    """Return the ranges by the number of their partition."""
    return {one.place[1]: one for one in ranges}
