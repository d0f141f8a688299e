"""What the retrier has in hand, and the one header that is for its tiers."""

from typing import Any, Final, NamedTuple
from zlib import crc32

from confluent_kafka import Message

from dataplane.ledger.facts import FactKey
from dataplane.ledger.meta import Headers, Meta
from dataplane.ledger.units import place_of

LEAVE_HEADER: Final = "penstock-leave"  # when a message leaves the tier it is in


class Parcel(NamedTuple):
    """A message in hand: where it was read, what is known of it, and when it is due by the lane's own clock."""

    slot: int
    message: Message
    meta: Meta
    headers: Headers
    due_us: int = 0


class Passed(NamedTuple):
    """Token of a record that takes the place of a message: the message is settled, and this fact is told."""

    slot: int
    offset: int
    meta: Meta
    fact: FactKey


def way_out(meta: Meta, key: bytes | None, partitions: int) -> dict[str, Any]:
    """Key or partition on retry-out: the same unit comes to the same place again, where transmit remembers it."""
    return {"partition": place_of(meta.position).partition % partitions} if key is None else {"key": key}


def way_back(meta: Meta, key: bytes | None, partitions: int) -> dict[str, Any]:
    """Partition on the ingest topic: the one that it came from."""
    partition = place_of(meta.position).partition % partitions
    return {"partition": partition} if key is None else {"partition": partition, "key": key}


def way_in(meta: Meta, key: bytes | None, partitions: int) -> dict[str, Any]:
    """Partition in a tier: a destination has one of its own, so that many messages of it stand in few others' way."""
    partition = crc32(f"{meta.pipe}/{meta.destination}".encode()) % partitions
    return {"partition": partition} if key is None else {"partition": partition, "key": key}


def leave_us(headers: Headers) -> int:
    """When a message leaves its tier; at once, if that cannot be read."""
    name, value = headers[-1]
    return int(value) if name == LEAVE_HEADER and value.isdigit() else 0


def plain(headers: Headers) -> Headers:
    """The headers without the one that is for a tier."""
    return headers[:-1] if headers[-1][0] == LEAVE_HEADER else headers
