"""The live tail of a process that serves pages: one reader of Kafka, however many look on.

Copies reach a viewer through a bounded queue that drops its oldest, so nobody waits for a slow browser: not the reader,
not the other viewers, and not the lanes, which do not know that anybody looks.
"""

from mgmt.tail.copies import Copy, Cursor, copy_of, parse_cursor
from mgmt.tail.filter import TailFilter
from mgmt.tail.hub import MOST_VIEWERS, Hub, TailFullError, hub
from mgmt.tail.seats import TailQuotaError, seats
from mgmt.tail.stream import Stream, shown

__all__ = [
    "MOST_VIEWERS",
    "Copy",
    "Cursor",
    "Hub",
    "Stream",
    "TailFilter",
    "TailFullError",
    "TailQuotaError",
    "copy_of",
    "hub",
    "parse_cursor",
    "seats",
    "shown",
]
