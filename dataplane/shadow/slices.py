"""Division of a run into jobs: each covers the same time in all partitions, so that it needs little of egress. Pure."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from dataplane.replay.ranges import OffsetRange


class JobSlice(NamedTuple):
    """Ranges of one job. `until_ms`: all of their records were stored before this time, milliseconds since 1970."""

    ranges: list[OffsetRange]
    until_ms: int


def next_slice(
    left: list[OffsetRange], most: int, offsets_at: Callable[[int], Mapping[int, int]], since_ms: int, until_ms: int
) -> JobSlice:
    """Return the next records of all partitions in the order of time, at most `most`; only those before `until_ms`.

    left:       what is left to read, at most one range of each partition
    offsets_at: returns by partition the offset of the first record stored at a time or later; below 0 if there is none
    since_ms:   no later than the first record
    """

    def before(time_ms: int) -> list[OffsetRange]:
        found, ranges = offsets_at(time_ms), []
        for one in left:
            offset = found.get(one.place[1], -1)
            end = one.end if offset < 0 else min(one.end, offset)
            if end > one.first:
                ranges.append(one._replace(end=end))
        return ranges

    ranges = before(until_ms)
    if size_of(ranges) <= most:
        return JobSlice(ranges, until_ms)
    low_ms, high_ms = since_ms, until_ms  # few enough before the one, too many before the other
    low_ranges: list[OffsetRange] = []
    while high_ms - low_ms > 1:
        middle_ms = (low_ms + high_ms) // 2
        found = before(middle_ms)
        if size_of(found) <= most:
            low_ms, low_ranges = middle_ms, found
        else:
            high_ms, ranges = middle_ms, found
    if low_ranges:
        return JobSlice(low_ranges, low_ms)
    return JobSlice(_first_records(ranges, most), high_ms)  # one millisecond has more than `most`


def size_of(ranges: list[OffsetRange]) -> int:
    """Return the number of offsets in the ranges."""
    return sum(one.end - one.first for one in ranges)


def _first_records(ranges: list[OffsetRange], most: int) -> list[OffsetRange]:
    found = []
    for one in ranges:
        size = min(one.end - one.first, most)
        most -= size
        if size:
            found.append(one._replace(end=one.first + size))
    return found
