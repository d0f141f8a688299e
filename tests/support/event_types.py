"""Subjects and event types of a source, as the control topic has them, and events in each framing."""

import io
import json
from typing import Any

import fastavro

from dataplane.schemas.parse import parse
from dataplane.schemas.types import ParsedSchema, SchemaType
from dataplane.schemas.wire import confluent_framed, encode, fingerprint_framed
from dataplane.tables.records import EventTypesRecord, RegisteredSchema, SubjectRecord

NOW_US = 1_795_564_800_000_000  # 2026-11-25
ORDER_1 = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "int"}]}
ORDER_2 = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "int"},
        {"name": "total", "type": ["null", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}],
         "default": None},
        {"name": "type", "type": ["null", "string"], "default": None},
    ],
}  # fmt: skip
REFUND = {"type": "object", "required": ["refund"], "properties": {"refund": {"type": "integer"}}}


def parsed(document: Any, kind: SchemaType = SchemaType.AVRO) -> ParsedSchema:
    return parse(kind, json.dumps(document))


def registered(schema_id: int, number: int, document: Any, kind: SchemaType = SchemaType.AVRO) -> RegisteredSchema:
    schema = parsed(document, kind)
    return RegisteredSchema(schema_id, number, kind, schema.fingerprint, schema.document)


def subject(name: str, *schemas: RegisteredSchema, tenant: str = "t", version: int = 1) -> SubjectRecord:
    return SubjectRecord(tenant, name, version, list(schemas))


ORDERS = subject("orders", registered(7, 1, ORDER_1), registered(8, 2, ORDER_2))
REFUNDS = subject("refunds", registered(9, 1, REFUND, SchemaType.JSON))


def event_types(
    type_from: str = "", subjects: dict[str, str] | None = None, *, version: int = 1, source: str = "shop"
) -> EventTypesRecord:
    """Return the event types of a source; by default all its events are of the subject `orders`."""
    return EventTypesRecord("p", source, version, type_from, {"": "orders"} if subjects is None else subjects)


def container(document: Any, *values: Any, codec: str = "null") -> bytes:
    written = io.BytesIO()
    fastavro.writer(written, document, values, codec=codec)
    return written.getvalue()


def confluent(schema_id: int, document: Any, value: Any) -> bytes:
    return confluent_framed(schema_id, encode(parsed(document), value))


def gilt(document: Any, value: Any) -> bytes:
    schema = parsed(document)
    return fingerprint_framed(schema.fingerprint, encode(schema, value))
