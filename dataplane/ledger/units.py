"""Units, which the ledger counts, and positions, which identify a message by its record in the ingest topic.

position = generation (10 bits) | partition (14 bits) | offset (40 bits): one integer, dense within a partition, so
roaring bitmaps stay small. A unit is (position, child) up to route and (position, child, destination) after it.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

OFFSET_BITS: Final = 40
PARTITION_BITS: Final = 14
GENERATION_BITS: Final = 10
MINUTE_US: Final = 60_000_000


class UnitPosition(NamedTuple):
    """Position as its three parts."""

    generation: int
    partition: int
    offset: int


@lru_cache(maxsize=4_096)
def partition_base(generation: int, partition: int) -> int:
    """Return the position of offset 0 of a partition, to which an offset can be added.

    Raises ValueError if the generation or the partition does not fit its bits.
    """
    if not 0 <= generation < 1 << GENERATION_BITS or not 0 <= partition < 1 << PARTITION_BITS:
        raise ValueError(f"generation must be below 1024 and partition below 16384, got {generation} and {partition}")
    return (generation << PARTITION_BITS | partition) << OFFSET_BITS


def dense(numbers: list[int]) -> Sequence[int]:
    """Return the numbers, as a range if they are consecutive: a set adds a range at the cost of one number."""
    if not numbers:
        return numbers
    whole = range(numbers[0], numbers[0] + len(numbers))
    return whole if numbers == list(whole) else numbers


def position_of(generation: int, partition: int, offset: int) -> int:
    """Pack generation, partition and offset into one integer. Raises ValueError as `partition_base` does."""
    return partition_base(generation, partition) + offset


def place_of(position: int) -> UnitPosition:
    """Unpack a position."""
    offset = position & (1 << OFFSET_BITS) - 1
    high = position >> OFFSET_BITS
    return UnitPosition(high >> PARTITION_BITS, high & (1 << PARTITION_BITS) - 1, offset)


def format_position(position: int) -> str:
    """Return `generation-partition-offset`, as receipts and pages show it. A hot path: builds no UnitPosition."""
    high = position >> OFFSET_BITS
    return f"{high >> PARTITION_BITS}-{high & (1 << PARTITION_BITS) - 1}-{position & (1 << OFFSET_BITS) - 1}"


def parse_position(text: str) -> int:
    """Parse what format_position returns. Raises ValueError."""
    generation, partition, offset = map(int, text.split("-"))
    return position_of(generation, partition, offset)


class BucketStamp(NamedTuple):
    """Bucket (minutes since the epoch) chosen at ingest; `off_time`: event_time was too far off to use."""

    bucket: int
    off_time: bool


def bucket_of(event_time_us: int, ingest_time_us: int, grace_us: int) -> BucketStamp:
    """Choose a message's bucket, once, at ingest.

    The bucket is the minute of event_time if that lies within [-grace, +1 min] of ingest_time, else the minute of
    ingest_time, flagged as off_time: a back-fill or a clock in the year 9999 cannot break the ledger.
    """
    if -grace_us <= event_time_us - ingest_time_us <= MINUTE_US:
        return BucketStamp(event_time_us // MINUTE_US, False)
    return BucketStamp(ingest_time_us // MINUTE_US, True)
