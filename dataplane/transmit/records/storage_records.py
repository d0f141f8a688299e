"""Records for destinations on Penstock's own topics: the topic, key, body and headers that a message becomes."""

from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

import msgspec

from dataplane.causes import Cause
from dataplane.ledger.breakdown import Slice
from dataplane.ledger.meta import META_HEADER, REPLAY_HEADER, Headers, MessageMeta, encode_meta
from dataplane.ledger.units import format_position
from dataplane.names import LOOKUP_TOPIC, output_topic
from dataplane.plan.encoding import EventEncoder
from dataplane.plan.stage import StageError
from dataplane.spec import LakeDestination, TableDestination, TopicDestination
from dataplane.tables.lookups import encode_row, row_key
from dataplane.tables.records import DestinationRecord
from dataplane.transmit.deliveries.delivery import Delivery
from dataplane.transmit.destinations.targets import encoder_of, lacks_schema
from dataplane.transmit.records.table_row import RowMaker
from dataplane.transmit.records.tombstones import Tombstones

KEY_END: Final = b"\0"  # ends the destination's name in an egress key


class KeptRecord(NamedTuple):
    """Record to produce."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: Headers


class EgressParts(Protocol):
    """Parts of a message as on egress, where the destination's name precedes the key."""

    meta: MessageMeta
    key: bytes | None
    body: bytes

    @property
    def carried(self) -> Headers:
        """Headers without the envelope."""


Maker = Callable[[Delivery], KeptRecord]
TopicMaker = Callable[[EgressParts], KeptRecord]


def record_maker(record: DestinationRecord, lake_topic: str) -> Maker:
    """Return a function that builds a destination's records; it raises StageError for a message it cannot write."""
    match record.to:
        case LakeDestination():
            return lambda send: KeptRecord(lake_topic, send.key, send.body, _lake_headers(send))
        case TableDestination():
            return _row_maker(record.table, RowMaker(record.to))
    topic, encoder = output_topic(record.pipe, record.name), encoder_of(record)
    if isinstance(record.to, TopicDestination) and record.to.compacted:
        return _compacted_maker(topic, encoder, Tombstones(record.to))
    return _topic_maker(topic, encoder)


def topic_maker(record: DestinationRecord) -> TopicMaker | None:
    """Return the maker of a destination whose records need no lane: a topic whose records have no order to keep.

    None for all others, and while the record lacks the schema of its encoding. The maker raises StageError for a
    message that it cannot encode.
    """
    if not isinstance(record.to, TopicDestination) or record.to.compacted is True or lacks_schema(record):
        return None
    return _topic_maker(output_topic(record.pipe, record.name), encoder_of(record))


def _compacted_maker(topic: str, encoder: EventEncoder | None, tombstones: Tombstones) -> Maker:
    """Return a maker of records whose key is that of the source alone; the value is null if the event removes it."""
    keep = _topic_maker(topic, encoder)

    def maker(send: Delivery) -> KeptRecord:
        key = (_own_key(send.key) or b"").removeprefix(send.meta.pipe.encode() + KEY_END)
        if not key:
            raise StageError(Cause.ROW, "key: needs a value, because the topic is compacted")
        if tombstones.removes(send.body, send.meta):
            return KeptRecord(topic, key, None, _identity_headers(send))
        return keep(send)._replace(key=key)

    return maker


def _topic_maker(topic: str, encoder: EventEncoder | None) -> TopicMaker:
    def maker(send: EgressParts) -> KeptRecord:
        body, carried = send.body, send.carried
        if encoder is not None:
            body, carried = encoder(body), encoder.carried(carried)
        return KeptRecord(topic, _own_key(send.key), body, [*_identity_headers(send), *carried])

    return maker


def _row_maker(table: str, to_row: RowMaker) -> Maker:
    def maker(send: Delivery) -> KeptRecord:
        row = to_row(send.body, send.meta)
        return KeptRecord(LOOKUP_TOPIC, row_key(table, row.key), encode_row(row.version, row.row), [])

    return maker


def _own_key(key: bytes | None) -> bytes | None:
    """Return the customer's key, without the destination's name that precedes it in egress."""
    return key.partition(KEY_END)[2] if key is not None else None


def _lake_headers(send: Delivery) -> Headers:
    """Return the headers as read, with a stopwatch up to the request that writes the record."""
    meta = msgspec.structs.replace(send.meta, stopwatch=send.stamp(Slice.LAKE, send.request_s))
    return [(META_HEADER, encode_meta(meta)), *send.carried]


def _identity_headers(send: EgressParts) -> Headers:
    """Return the id and position by which a repeat can be recognised; of a copy, also the replay that made it."""
    meta = send.meta
    headers = [("penstock-id", meta.id.encode()), ("penstock-position", format_position(meta.position).encode())]
    return [*headers, (REPLAY_HEADER, meta.replay.encode())] if meta.replay else headers
