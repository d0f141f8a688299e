"""Buckets of a replay's account: its units are spread by position, so that a report rewrites few of them. Pure.

The Observer unites a report's sets with the stored ones of the same bucket, which takes time by their size: 5 M units
of a shared topic in one bucket took seconds for each job of two seconds.
"""

from typing import Final

from pyroaring import BitMap64

from dataplane.ledger.units import OFFSET_BITS

BUCKETS: Final = 240  # minutes of four hours, a part of a day: facts are stored and deleted by day
SPAN_BITS: Final = 18  # 262,144 offsets of a partition follow each other in one bucket
_OFFSET: Final = (1 << OFFSET_BITS) - 1


def replay_buckets(bucket: int) -> range:
    """Return all buckets of a replay that was created in the minute `bucket`."""
    first = bucket - bucket % BUCKETS
    return range(first, first + BUCKETS)


def replay_bucket(bucket: int, position: int) -> int:
    """Return the bucket of an event's units in a replay that was created in the minute `bucket`."""
    return bucket - bucket % BUCKETS + ((position & _OFFSET) >> SPAN_BITS) % BUCKETS


def spread(bucket: int, positions: BitMap64) -> dict[int, BitMap64]:
    """Return the positions by their bucket."""
    found: dict[int, BitMap64] = {}
    left = positions
    while left:
        first = left.min() >> SPAN_BITS << SPAN_BITS  # the offset is in the low bits of a position
        span = BitMap64()
        span.add_range(first, first + (1 << SPAN_BITS))
        part, its_bucket = left & span, replay_bucket(bucket, first)
        found[its_bucket] = found[its_bucket] | part if its_bucket in found else part
        left = left - span
    return found
