"""Messages that the retrier holds, and the header that delays one in a tier."""

from typing import Any, Final, NamedTuple
from zlib import crc32

from confluent_kafka import Message

from dataplane.ledger.facts import FactKey
from dataplane.ledger.meta import Headers, MessageMeta
from dataplane.runtime.lanes.placement import by_key_or_origin
from dataplane.spec import keeps_order
from dataplane.tables.control import ControlTable

LEAVE_HEADER: Final = "penstock-leave"  # wall time in microseconds at which the message leaves its tier


class RetryMessage(NamedTuple):
    """Message that the lane holds: its slot, envelope and headers, and its due time by the lane's steady clock."""

    slot: int
    message: Message
    meta: MessageMeta
    headers: Headers
    due_us: int = 0


class PassedOnToken(NamedTuple):
    """Token of a record that replaces a message: once it is stored, the message is settled and the fact is reported."""

    slot: int
    offset: int
    meta: MessageMeta
    fact: FactKey


def retry_out_partition(table: ControlTable, meta: MessageMeta, key: bytes | None, partitions: int) -> dict[str, Any]:
    """Return key and partition on retry-out, the same each time: transmit remembers units by partition.

    An unknown destination counts as one that keeps the order of a key.
    """
    record = table.destination(meta.pipe, meta.destination)
    return by_key_or_origin(meta, key, partitions, in_order=record is None or keeps_order(record.to))


def delay_partition(meta: MessageMeta, key: bytes | None, partitions: int) -> dict[str, Any]:
    """Return the tier partition of a destination, so that one destination's backlog delays few others."""
    partition = crc32(f"{meta.pipe}/{meta.destination}".encode()) % partitions
    return {"partition": partition} if key is None else {"partition": partition, "key": key}


def leave_us(headers: Headers) -> int:
    """Return the wall time (microseconds) at which a message leaves its tier; 0 (now) if the header cannot be read."""
    name, value = headers[-1]
    return int(value) if name == LEAVE_HEADER and value.isdigit() else 0


def without_leave_header(headers: Headers) -> Headers:
    """Return the headers without the tier's header."""
    return headers[:-1] if headers[-1][0] == LEAVE_HEADER else headers
