"""Search for the time from which on a pipe has accepted a number of events."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from mgmt.ledger.queries.bucket_range import MINUTE_S, bucket_at, start_of
from mgmt.ledger.queries.minute_sums import GroupSums, Stretch, minute_sums
from mgmt.ledger.queries.rollups import range_sums

HOUR_MIN: Final = 60


class NewestPart(NamedTuple):
    """Group of minutes in which the search ends: its number, its events, and how many of them are wanted."""

    number: int
    events: int
    wanted: int


def newest_part(counts: Mapping[int, int], most: int) -> NewestPart | None:
    """Return the newest group from which on there are `most` events; None if all of them have fewer. Pure."""
    for number in sorted(counts, reverse=True):
        if counts[number] >= most:
            return NewestPart(number, counts[number], most)
        most -= counts[number]
    return None


def start_of_newest(pipe_id: str, most: int, *, now: datetime, horizon: timedelta) -> datetime:
    """Return the time from which on the pipe has accepted about `most` events, at the earliest `now - horizon`.

    The counts are those of the ledger by minute. The events of the first minute are assumed to be spread evenly.
    """
    earliest, end = now - horizon, bucket_at(now) + 1
    hours = range_sums({pipe_id: pipe_id}, bucket_at(earliest), end, HOUR_MIN)
    hour = newest_part(_accepted(hours.groups), most)
    if hour is None:
        return earliest
    first = hour.number * HOUR_MIN
    minutes = minute_sums([Stretch(pipe_id, first, min(first + HOUR_MIN, end), pipe_id)], 1)
    minute = newest_part(_accepted(minutes), hour.wanted)
    if minute is None:  # the ledger has changed since
        return max(earliest, start_of(first))
    skipped = 1 - minute.wanted / minute.events
    return max(earliest, start_of(minute.number) + timedelta(seconds=skipped * MINUTE_S))


def _accepted(groups: GroupSums) -> dict[int, int]:
    """Return the events accepted by group of minutes, without empty groups."""
    return {key.number: sums.accepted for key, sums in groups.sums.items() if sums.accepted}
