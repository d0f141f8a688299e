"""Blocks: what a pipe did in five minutes, and the hours they are kept in."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from msgspec import Struct

MINUTES: Final = 5
IN_HOUR: Final = 60 // MINUTES
DAY_H, WEEK_H = 24, 7 * 24


class Block(Struct, frozen=True, array_like=True):
    """Five minutes of one pipe, by the minutes its events are booked in, as they stood when these had ended.

    volume:     events ACKed
    delivered:  units that a destination took
    failed:     units that died, or failed and wait for a later try; one that was taken after that counts in both
    arrived:    passes that `lag_p95_us` was read from
    lag_p95_us: end to end; 0 if nothing arrived
    """

    volume: int = 0
    delivered: int = 0
    failed: int = 0
    arrived: int = 0
    lag_p95_us: int = 0


Hour = Sequence[Block | None]  # IN_HOUR of them; None where nobody listened
Known = Mapping[int, Hour]  # by the hour's number since the epoch


def block_at(moment: datetime) -> int:
    """The number of the block that a moment lies in, since the epoch."""
    return int(moment.timestamp()) // (60 * MINUTES)


def start_of(block: int) -> datetime:
    """The moment a block begins."""
    return datetime.fromtimestamp(block * 60 * MINUTES, UTC)


def minutes_of(block: int) -> range:
    """The buckets that it is made of."""
    return range(block * MINUTES, (block + 1) * MINUTES)


def hour_of(block: int) -> int:
    """The hour that it lies in."""
    return block // IN_HOUR


def place_in_hour(block: int) -> int:
    """Which of its hour's blocks it is, from 0."""
    return block % IN_HOUR
