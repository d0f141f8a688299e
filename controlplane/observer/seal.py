"""The seal: when a bucket's account is final (pure), and the row that says so.

A bucket ends when no unit of it can come any more: its minute, the grace, and the time a produce may take are over.
From then on the ingest topics' ends are the bucket's end. It is sealed when process has passed that end, and the
readers of egress, of dedup and of the lake where they were asked, the last of what the bucket put there. Units that are
being retried do not hold it up: they are `retrying` in the seal, and late when they settle.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from msgspec import Struct

from controlplane.observer.merge import Place
from dataplane.ledger.bins import Account, Bin, Bins
from dataplane.ledger.unitset import UnitSet
from mgmt.models import Seal

PRODUCE_S: Final = 60  # longer than ingest lets a record wait for its report, plus clocks that differ
UPSTREAM: Final = ""


class Progress(Struct, frozen=True):
    """What decides on one bucket.

    ends:   the ingest topics' ends when the bucket ended
    reach:  the highest offset of each partition that carries a unit of it, on the topics that are read on: egress,
            slow, lake, process-slow, and those around dedup
    passed: for each partition the offset below which its lanes have settled everything
    """

    ends: Mapping[Place, int]
    reach: Mapping[Place, int]
    passed: Mapping[Place, int]


def closing_s(grace_s: int) -> int:
    """Seconds from the end of a minute until its bucket has ended."""
    return grace_s + PRODUCE_S


def first_open_bucket(now: datetime, grace_s: int) -> int:
    """The first bucket that has not ended; every one below it has."""
    return int((now.timestamp() - closing_s(grace_s)) // 60)


def why_open(progress: Progress) -> str:
    """Who has not passed the bucket yet; "" when it can be sealed."""
    if not progress.ends:
        return "no ingest topic of its cell is known"
    for place, end in progress.ends.items():
        if (low := progress.passed.get(place, 0)) < end:
            return f"process has passed {low} of {end} on {place[0]}/{place[1]}"
    for place, highest in progress.reach.items():
        if (low := progress.passed.get(place, 0)) <= highest:
            return f"its reader has passed {low} of {highest + 1} on {place[0]}/{place[1]}"
    return ""


def seal_row(pipe: str, bucket: int, account: Account, now: datetime) -> Seal:
    """The account as the row that is never changed."""
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


def bin_counts(account: Account) -> dict[str, dict[str, int]]:
    """Units per destination and bin, empty bins left out; "" holds those that never got as far as a destination."""
    counts = {name: _counted(bins) for name, bins in account.destinations.items()}
    if upstream := _counted(account.upstream):
        counts[UPSTREAM] = upstream
    return counts


def node_counts(account: Account) -> list[dict[str, Any]]:
    """Units that arrived and were lost, node by node in the order of travel."""
    return [{"node": line.node, "arrived": len(line.arrived), "lost": len(line.lost)} for line in account.nodes]


def _counted(bins: Bins) -> dict[str, int]:
    sizes: Iterable[tuple[Bin, UnitSet]] = bins.items()
    return {name.value: len(units) for name, units in sizes if units}
