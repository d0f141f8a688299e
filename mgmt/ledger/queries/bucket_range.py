"""Ranges of buckets (minutes) that pages show. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

MINUTE_S: Final = 60
SPANS: Final[Mapping[str, int]] = {"15m": 15, "1h": 60, "6h": 360}
DEFAULT_SPAN: Final = "1h"
_MOST_POINTS: Final = 72


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

    def groups(self) -> list[range]:
        """Return the range divided into at most 72 groups of equal length, for charts over time."""
        step = -(-self.minutes // _MOST_POINTS)
        return [range(start, min(start + step, self.last + 1)) for start in range(self.first, self.last + 1, step)]


def span_until(name: str, now: datetime) -> BucketRange:
    """Return the named range up to and including the current minute; an unknown name means the default."""
    known = name if name in SPANS else DEFAULT_SPAN
    last = bucket_at(now)
    return BucketRange(known, last - SPANS[known] + 1, last)


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
