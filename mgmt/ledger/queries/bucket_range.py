"""Ranges of buckets (minutes) that pages show. Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

MINUTE_S: Final = 60
SPANS: Final[Mapping[str, int]] = {"15m": 15, "1h": 60, "6h": 360, "24h": 1440}
DEFAULT_SPAN: Final = "1h"
MOST_SELECTED_MIN: Final = max(SPANS.values())
_MOST_POINTS: Final = 72
_PART_MIN: Final = (1, 5, 30, 120, 720)  # lengths of parts
_MOST_PARTS: Final = 14
_KEPT_MIN: Final = 400 * 24 * 60  # nothing that pages show is kept for longer
_TYPED: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}(:[0-9]{2})?Z?")


class SelectionError(ValueError):
    """The times of a selection cannot be used; the message says why, for the page."""


@dataclass(frozen=True)
class BucketRange:
    """Buckets from `first` to `last`, both included; `name` is the value of the page's selector."""

    name: str
    first: int
    last: int

    @property
    def minutes(self) -> int:
        """Number of buckets in the range."""
        return self.last - self.first + 1

    @property
    def part_minutes(self) -> int:
        """Length of a part in minutes."""
        fitting = (length for length in _PART_MIN if length * _MOST_PARTS >= self.minutes)
        return next(fitting, _PART_MIN[-1])

    def parts(self) -> list[range]:
        """Return the range divided at the clock, such as at every full hour, for trends of many pipes.

        The first part may be shorter, and the last one has only begun.
        """
        step = self.part_minutes
        starts = range(self.first // step * step, self.last + 1, step)
        return [range(max(start, self.first), min(start + step, self.last + 1)) for start in starts]

    def groups(self) -> list[range]:
        """Return the range divided into at most 72 groups of equal length, for charts over time."""
        step = -(-self.minutes // _MOST_POINTS)
        return [range(start, min(start + step, self.last + 1)) for start in range(self.first, self.last + 1, step)]


def span_until(name: str, now: datetime) -> BucketRange:
    """Return the named range up to and including the current minute; an unknown name means the default."""
    known = name if name in SPANS else DEFAULT_SPAN
    last = bucket_at(now)
    return BucketRange(known, last - SPANS[known] + 1, last)


def selected_range(since: str, until: str, now: datetime) -> BucketRange:
    """Return the minutes from `since` (included) to `until` (excluded): times in UTC, such as `2026-05-03T02:14`.

    Raises SelectionError.
    """
    return _minutes(_typed_bucket(since), _typed_bucket(until), bucket_at(now))


def range_between(since: datetime, until: datetime, now: datetime) -> BucketRange:
    """Return the minutes from that of `since` (included) to that of `until` (excluded). Raises SelectionError."""
    return _minutes(bucket_at(since), bucket_at(until), bucket_at(now))


def _minutes(first: int, end: int, current: int) -> BucketRange:
    if end <= first:
        raise SelectionError("the end has to be after the start")
    if end - first > MOST_SELECTED_MIN:
        raise SelectionError(f"it has more than {MOST_SELECTED_MIN // 60} hours")
    if first > current:
        raise SelectionError("it is in the future")
    if first < current - _KEPT_MIN:
        raise SelectionError("nothing is kept for so long")
    return BucketRange("", first, min(end - 1, current))


def _typed_bucket(text: str) -> int:
    if not _TYPED.fullmatch(text):
        raise SelectionError("it needs a start and an end, each a date and a time")
    try:
        return bucket_at(datetime.fromisoformat(text[:16]).replace(tzinfo=UTC))
    except ValueError as exc:
        raise SelectionError("its date or time does not exist") from exc


def bucket_at(moment: datetime) -> int:
    """Return the bucket that contains a time."""
    return int(moment.timestamp()) // MINUTE_S


def start_of(bucket: int) -> datetime:
    """Return the time at which a bucket starts."""
    return datetime.fromtimestamp(bucket * MINUTE_S, UTC)


def rate_per_s(previous: int, current: int, elapsed_s: float) -> float:
    """Return the events per second over the last 60 s, from the counts of the previous and the current minute.

    The previous minute is weighted by the part of it that is within the last 60 s.
    """
    return (previous * (1 - elapsed_s / MINUTE_S) + current) / MINUTE_S
