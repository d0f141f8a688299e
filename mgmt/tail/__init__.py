"""Live tail of a web process: one Kafka reader for any number of viewers.

Copies reach a viewer through a bounded queue that drops its oldest, so a slow browser delays neither the reader nor the
other viewers, nor the lanes, which do not know about viewers.
"""

from mgmt.tail.copies import PeekedCopy, TailCursor, copy_of, parse_cursor
from mgmt.tail.filter import TailFilter
from mgmt.tail.hub import MOST_VIEWERS, TailCapacityError, TailHub, hub
from mgmt.tail.seats import TailQuotaError, seats
from mgmt.tail.stream import TailStream, shown

__all__ = [
    "MOST_VIEWERS",
    "PeekedCopy",
    "TailCapacityError",
    "TailCursor",
    "TailFilter",
    "TailHub",
    "TailQuotaError",
    "TailStream",
    "copy_of",
    "hub",
    "parse_cursor",
    "seats",
    "shown",
]
