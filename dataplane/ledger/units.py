"""Units: what the ledger counts. A position names a message by its place in the ingest topic.

position = generation (10 bits) | partition (14 bits) | offset (40 bits): one integer, dense within a partition, so
roaring bitmaps stay small. A unit is (position, child) up to route and (position, child, destination) after it.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

OFFSET_BITS: Final = 40
PARTITION_BITS: Final = 14
GENERATION_BITS: Final = 10
MINUTE_US: Final = 60_000_000


class Place(NamedTuple):
    """A position taken apart."""

    generation: int
    partition: int
    offset: int


def partition_base(generation: int, partition: int) -> int:
    """The position of offset 0 of a partition; add an offset to it.

    Raises ValueError if either does not fit its bits.
    """
    if not 0 <= generation < 1 << GENERATION_BITS or not 0 <= partition < 1 << PARTITION_BITS:
        raise ValueError(f"generation below 1024 and partition below 16384 needed, got {generation}, {partition}")
    return (generation << PARTITION_BITS | partition) << OFFSET_BITS


def dense(numbers: list[int]) -> Sequence[int]:
    """The same numbers, as a range if each is one more than the last: a set takes that at the price of one."""
    if not numbers:
        return numbers
    whole = range(numbers[0], numbers[0] + len(numbers))
    return whole if numbers == list(whole) else numbers


def position_of(generation: int, partition: int, offset: int) -> int:
    """Pack a place into one integer."""
    return partition_base(generation, partition) + offset


def place_of(position: int) -> Place:
    """Take a position apart."""
    offset = position & (1 << OFFSET_BITS) - 1
    high = position >> OFFSET_BITS
    return Place(high >> PARTITION_BITS, high & (1 << PARTITION_BITS) - 1, offset)


def format_position(position: int) -> str:
    """`generation-partition-offset`, as receipts and pages show it. A hot path, so the place is not made first."""
    high = position >> OFFSET_BITS
    return f"{high >> PARTITION_BITS}-{high & (1 << PARTITION_BITS) - 1}-{position & (1 << OFFSET_BITS) - 1}"


def parse_position(text: str) -> int:
    """The inverse of format_position. Raises ValueError."""
    generation, partition, offset = map(int, text.split("-"))
    return position_of(generation, partition, offset)


class Stamp(NamedTuple):
    """The bucket (minutes since the epoch) chosen at ingest, and whether event_time was too far off to use."""

    bucket: int
    off_time: bool


def bucket_of(event_time_us: int, ingest_time_us: int, grace_us: int) -> Stamp:
    """Choose a message's bucket, once, at ingest.

    The minute of event_time if that lies within [-grace, +1 min] of ingest_time, else the minute of ingest_time,
    flagged: a back-fill or a clock in the year 9999 cannot break the books.
    """
    if -grace_us <= event_time_us - ingest_time_us <= MINUTE_US:
        return Stamp(event_time_us // MINUTE_US, False)
    return Stamp(ingest_time_us // MINUTE_US, True)
