"""Events are encoded exactly as the schema says; an event that does not fit is named with place and reason."""

import json
from decimal import Decimal
from io import BytesIO
from typing import Any

import fastavro
import pytest

from dataplane.causes import Cause
from dataplane.plan.encoding import EventEncoder
from dataplane.plan.stage import StageError
from dataplane.schemas.types import ParsedSchema, SchemaType
from dataplane.schemas.wire import decode
from dataplane.spec import AvroEncoding

SCHEMA = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "string"},
        {"name": "total", "type": {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2}},
        {"name": "note", "type": ["null", "string"], "default": None},
    ],
}
DOCUMENT = json.dumps(SCHEMA)
PARSED = ParsedSchema(SchemaType.AVRO, DOCUMENT, "", "", None, (), DOCUMENT)


def encoder(format_: Any, schema_id: int = 258) -> EventEncoder:
    return EventEncoder(AvroEncoding(format_, "orders-value", 3), schema_id, "ab" * 32, DOCUMENT)


def test_avro_is_the_bare_value_with_exact_decimals():
    payload = encoder("avro")(b'{"id":"ord-1","total":"12345678.90"}')
    assert decode(PARSED, payload) == {"id": "ord-1", "total": Decimal("12345678.90"), "note": None}


def test_confluent_framing_is_a_zero_byte_and_the_schema_id_before_the_same_value():
    body = b'{"id":"ord-1","total":"1.50","note":"x"}'
    payload = encoder("confluent")(body)
    assert payload[:5] == b"\x00\x00\x00\x01\x02"
    assert payload[5:] == encoder("avro")(body)


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        (b'{"id":"ord-1"}', "/total: is required, but missing"),
        (b'{"id":"ord-1","total":"1.505"}', "/total: "),
        (b'{"id":"ord-1","total":"1.50","tax":1}', "/tax: is not a field of the schema"),
        (b"not JSON", "needs JSON"),
        (b"\xff\xfe", "needs JSON"),
    ],
)
def test_misfit_is_named_with_subject_place_and_reason(body: bytes, detail: str):
    with pytest.raises(StageError) as caught:
        encoder("avro")(body)
    assert caught.value.cause == Cause.SCHEMA
    assert caught.value.detail.startswith(f"orders-value@3: {detail}")


def test_headers_name_content_type_version_and_fingerprint_and_replace_those_of_the_message():
    own = [("content-type", b"application/json"), ("penstock-schema", b"forged@1"), ("ce_type", b"order")]
    assert encoder("avro").carried(own) == [
        ("ce_type", b"order"),
        ("content-type", b"application/avro"),
        ("penstock-schema", b"orders-value@3"),
        ("penstock-schema-fingerprint", b"ab" * 32),
    ]
    assert dict(encoder("confluent").carried(own))["content-type"] == b"application/octet-stream"
    assert encoder("avro").lines[0] == "penstock-schema: orders-value@3"


def test_another_library_reads_the_bytes():
    payload = encoder("avro")(b'{"id":"ord-1","total":"-0.01"}')
    assert fastavro.schemaless_reader(BytesIO(payload), SCHEMA, None) == {
        "id": "ord-1",
        "total": Decimal("-0.01"),
        "note": None,
    }
