"""Ranges of offsets of a run: what is left of them, and the division of a job into tasks. Pure."""

from collections.abc import Mapping
from typing import Final, NamedTuple, Protocol

import msgspec

from dataplane.names import PartitionKey
from dataplane.replay.result import TaskResult
from dataplane.tables.redrives import format_place, parse_place
from dataplane.tables.replays import REPLAY_VERSION, ReplayProgress

MOST_TASKS: Final = 2  # task slots that a run takes while one of its jobs runs


class OffsetRange(NamedTuple):
    """Offsets of one partition, from `first` on; `end` is exclusive."""

    place: PartitionKey
    first: int
    end: int


class RangeProgress(Protocol):
    """Progress of a run through ranges: by "<topic>/<partition>", how far it is and where it ends."""

    @property
    def reached(self) -> dict[str, int]:
        """All events below this offset are done."""

    @property
    def ends(self) -> dict[str, int]:
        """The offset at which the run ends."""


def first_progress(replay: str, ranges: list[OffsetRange], at_us: int, error: str = "") -> ReplayProgress:
    """Return the progress of a replay whose range has been resolved and that has read nothing."""
    return ReplayProgress(
        REPLAY_VERSION,
        replay,
        at_us,
        reached={format_place(one.place): one.first for one in ranges},
        ends={format_place(one.place): max(one.first, one.end) for one in ranges},
        error=error,
    )


def is_resolved(progress: RangeProgress) -> bool:
    """Return True if the run's range of offsets is known."""
    return bool(progress.ends)


def remaining(progress: RangeProgress) -> list[OffsetRange]:
    """Return what is left to read, the largest range first."""
    ranges = [
        OffsetRange(parse_place(place), progress.reached.get(place, 0), end) for place, end in progress.ends.items()
    ]
    left = [one for one in ranges if one.first < one.end]
    return sorted(left, key=lambda one: (one.first - one.end, one.place))


def next_tasks(progress: ReplayProgress, slots: int, rate_per_s: float) -> list[tuple[OffsetRange, float]]:
    """Return the ranges that the next job reads at the same time, each with its share of the rate (units per second).

    Each range is of another partition, so that what is done stays a prefix of the partition.
    """
    ranges = remaining(progress)[: max(0, min(slots, MOST_TASKS))]
    return [(one, rate_per_s / len(ranges)) for one in ranges]


def merged(progress: ReplayProgress, results: list[TaskResult], at_us: int) -> ReplayProgress:
    """Return the progress after a job. Results of tasks that failed count as far as they reached."""
    reached, units = dict(progress.reached), dict(progress.units)
    for result in results:
        place = format_place(result.place)
        reached[place] = max(reached.get(place, 0), min(result.reached, progress.ends[place]))
        _add(units, result.units)
    return msgspec.structs.replace(
        progress,
        at_us=at_us,
        reached=reached,
        units=units,
        read=progress.read + sum(result.read for result in results),
        asked=progress.asked + sum(result.asked for result in results),
        filtered=progress.filtered + sum(result.filtered for result in results),
        failed=progress.failed + sum(result.failed for result in results),
        size_bytes=progress.size_bytes + sum(result.size_bytes for result in results),
    )


def _add(totals: dict[str, int], more: Mapping[str, int]) -> None:
    for name, count in more.items():
        totals[name] = totals.get(name, 0) + count
