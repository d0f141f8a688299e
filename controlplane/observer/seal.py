"""The seal: decide when a bucket's account is final, and build its row.

A bucket ends when no unit of it can arrive any more: its minute, the grace and the longest time that a produce takes
are over. The ends of the ingest topics at that time are the end of the bucket. It is sealed when process has passed
that end, and the readers of egress, and of dedup and the lake if they are used, have passed the last record of the
bucket. Units that wait for a retry do not delay the seal: they are `retrying` in it, and late when they settle.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final

from msgspec import Struct

from dataplane.ledger.bins import Bin, Bins, BucketAccount
from dataplane.ledger.losses import node_counts
from dataplane.ledger.unitset import UnitSet
from dataplane.names import PartitionKey
from mgmt.models import Seal

PRODUCE_S: Final = 60  # longer than ingest waits for a delivery report, plus clock differences
UPSTREAM: Final = ""


class SealProgress(Struct, frozen=True):
    """Offsets that decide on one bucket.

    ends:   by partition, the end of the ingest topics when the bucket ended
    reach:  by partition, the highest offset with a unit of the bucket, on the topics that must be read before the seal:
            egress, slow, lake, process-slow, bulk, and those around dedup
    passed: by partition, the offset below which its lanes have settled everything
    """

    ends: Mapping[PartitionKey, int]
    reach: Mapping[PartitionKey, int]
    passed: Mapping[PartitionKey, int]


def closing_s(grace_s: int) -> int:
    """Return the seconds from the end of a minute to the end of its bucket."""
    return grace_s + PRODUCE_S


def first_open_bucket(now: datetime, grace_s: int) -> int:
    """Return the first bucket that has not ended; all buckets below it have."""
    return int((now.timestamp() - closing_s(grace_s)) // 60)


def why_open(progress: SealProgress) -> str:
    """Return the reason why the bucket cannot be sealed; "" if it can."""
    if not progress.ends:
        return "no ingest topic of its cell is known"
    for (topic, partition), end in progress.ends.items():
        if (settled := progress.passed.get((topic, partition), 0)) < end:
            return f"process has passed {settled} of {end} on {topic}/{partition}"
    for (topic, partition), highest in progress.reach.items():
        if (settled := progress.passed.get((topic, partition), 0)) <= highest:
            return f"its reader has passed {settled} of {highest + 1} on {topic}/{partition}"
    return ""


def seal_row(pipe: str, bucket: int, account: BucketAccount, now: datetime) -> Seal:
    """Return the row of a seal; it is never changed."""
    return Seal(
        pipe_id=pipe,
        bucket=bucket,
        sealed_at=now,
        accepted=len(account.acked),
        unacked=len(account.unacked),
        lost=account.count(Bin.LOST),
        bins=bin_counts(account),
        nodes=node_counts(account),
    )


def bin_counts(account: BucketAccount) -> dict[str, dict[str, int]]:
    """Return the units per destination and bin, without empty bins; "" has those that ended before a destination."""
    counts = {name: _counted(bins) for name, bins in account.destinations.items()}
    if upstream := _counted(account.upstream):
        counts[UPSTREAM] = upstream
    return counts


def _counted(bins: Bins) -> dict[str, int]:
    sizes: Iterable[tuple[Bin, UnitSet]] = bins.items()
    return {name.value: len(units) for name, units in sizes if units}
