"""Blocks: the figures of a pipe over five minutes, and the hours into which they are grouped."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from msgspec import Struct

MINUTES: Final = 5
IN_HOUR: Final = 60 // MINUTES
DAY_H, WEEK_H = 24, 7 * 24


class PatternBlock(Struct, frozen=True, array_like=True):
    """Figures of five buckets of one pipe, read when these minutes had ended.

    volume:     events ACKed
    delivered:  units that a destination accepted
    failed:     units that are dead, or failed and wait for a retry; a unit that is delivered later counts in both
    arrived:    measurements behind `lag_p95_us`
    lag_p95_us: end-to-end lag in microseconds; 0 if no message arrived
    """

    volume: int = 0
    delivered: int = 0
    failed: int = 0
    arrived: int = 0
    lag_p95_us: int = 0


Hour = Sequence[PatternBlock | None]  # IN_HOUR blocks; None for a block that was not observed
Known = Mapping[int, Hour]  # by the hour's number since the epoch


def block_at(moment: datetime) -> int:
    """Return the number, since the epoch, of the block that contains the moment."""
    return int(moment.timestamp()) // (60 * MINUTES)


def start_of(block: int) -> datetime:
    """Return the start of a block."""
    return datetime.fromtimestamp(block * 60 * MINUTES, UTC)


def minutes_of(block: int) -> range:
    """Return the buckets of a block."""
    return range(block * MINUTES, (block + 1) * MINUTES)


def hour_of(block: int) -> int:
    """Return the number, since the epoch, of the hour that contains the block."""
    return block // IN_HOUR


def place_in_hour(block: int) -> int:
    """Return the index of the block in its hour, from 0."""
    return block % IN_HOUR
