"""Spans of minutes that pages show. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

MINUTE_S: Final = 60
SPANS: Final[Mapping[str, int]] = {"15m": 15, "1h": 60, "6h": 360}
DEFAULT_SPAN: Final = "1h"
_MOST_POINTS: Final = 72


@dataclass(frozen=True)
class Span:
    """The buckets from `first` to `last`, both included; `name` is the selector's word."""

    name: str
    first: int
    last: int

    @property
    def minutes(self) -> int:
        """How many buckets it holds."""
        return self.last - self.first + 1

    def groups(self) -> list[range]:
        """The span cut into at most 72 runs of equal length, for charts over time."""
        step = -(-self.minutes // _MOST_POINTS)
        return [range(start, min(start + step, self.last + 1)) for start in range(self.first, self.last + 1, step)]


def span_until(name: str, now: datetime) -> Span:
    """The named span up to and including now's minute; an unknown name means the default."""
    known = name if name in SPANS else DEFAULT_SPAN
    last = bucket_at(now)
    return Span(known, last - SPANS[known] + 1, last)


def bucket_at(moment: datetime) -> int:
    """The bucket a moment lies in."""
    return int(moment.timestamp()) // MINUTE_S


def start_of(bucket: int) -> datetime:
    """The moment a bucket begins."""
    return datetime.fromtimestamp(bucket * MINUTE_S, UTC)


def rate_per_s(previous: int, current: int, elapsed_s: float) -> float:
    """Events a second over the last 60 s, from the counts of the last full minute and of the one under way.

    The full minute counts by the part of it that still lies within the last 60 s.
    """
    return (previous * (1 - elapsed_s / MINUTE_S) + current) / MINUTE_S
