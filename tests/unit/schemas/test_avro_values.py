"""Events in Avro and JSON: conversion without loss, logical types, and the place of each error."""

import io
import json
import math
import random
import time
import uuid
from datetime import UTC, date, datetime
from datetime import time as time_of_day
from decimal import Decimal
from typing import Any

import fastavro
import pytest

from dataplane.schemas.avro import tree_of
from dataplane.schemas.parse import parse
from dataplane.schemas.standard import time_uuid_clock_us, time_uuid_problem
from dataplane.schemas.types import ParsedSchema, SchemaRejectedError, SchemaType
from dataplane.schemas.wire import avro_to_json, decode, encode, json_to_avro
from tests.support.avro_schemas import SchemaMaker, ValueMaker, without_logical
from tests.support.hostile_schemas import field, record

NOW_US = 1_795_564_800_000_000  # 2026-11-25
MONEY = record(
    {"name": "amount", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
    {"name": "currency", "type": "string"},
    name="Money",
    logicalType="money",
)


def avro(schema: Any) -> ParsedSchema:
    return parse(SchemaType.AVRO, json.dumps(schema))


def of(base: Any, name: str, **more: Any) -> dict[str, Any]:
    return {"type": base, "logicalType": name} | more


def fixed(size: int, **more: Any) -> dict[str, Any]:
    return {"type": "fixed", "name": "F", "size": size} | more


def random_events(seed: int, count: int) -> list[tuple[ParsedSchema, bytes]]:
    """Return random schemas with an event that fastavro has written for each."""
    rng = random.Random(seed)
    found = []
    for _ in range(count):
        schema = avro(SchemaMaker(rng).schema())
        written = io.BytesIO()
        value = ValueMaker(rng).value(tree_of(schema.document))
        fastavro.schemaless_writer(written, without_logical(schema.document), value)
        found.append((schema, written.getvalue()))
    return found


def test_decoded_event_is_what_fastavro_decodes():
    for schema, data in random_events(1, 500):
        expected = fastavro.schemaless_reader(io.BytesIO(data), json.loads(schema.document))
        assert decode(schema, data) == expected, schema.document


def test_event_is_the_same_after_json():
    for schema, data in random_events(2, 500):
        as_text, as_numbers = avro_to_json(schema, data), avro_to_json(schema, data, decimals_as_numbers=True)
        assert json_to_avro(schema, as_text) == data, (schema.document, as_text)
        assert json_to_avro(schema, as_numbers) == data, (schema.document, as_numbers)


@pytest.mark.parametrize(
    ("schema", "value", "decoded", "as_json"),
    [
        (of("bytes", "decimal", precision=5, scale=2), "12.30", Decimal("12.30"), "12.30"),
        (of("bytes", "decimal", precision=5, scale=2), -1, Decimal("-1.00"), "-1.00"),
        (of("bytes", "decimal", precision=5, scale=2), Decimal("1E+2"), Decimal("100.00"), "100.00"),
        (of("bytes", "decimal", precision=5, scale=2), "-0.0", Decimal("0.00"), "0.00"),
        (of("bytes", "decimal", precision=5, scale=2), "999.9900", Decimal("999.99"), "999.99"),
        (fixed(4, logicalType="decimal", precision=9, scale=9), "-0.000000001", Decimal("-1E-9"), "-0.000000001"),
        (of("int", "date"), "2026-11-25", date(2026, 11, 25), "2026-11-25"),
        (of("int", "date"), date(1, 1, 1), date(1, 1, 1), "0001-01-01"),
        (of("int", "date"), 20_782, date(2026, 11, 25), "2026-11-25"),
        (of("int", "time-millis"), "08:00:00.123", time_of_day(8, 0, 0, 123_000), "08:00:00.123000"),
        (
            of("long", "time-micros"),
            time_of_day(23, 59, 59, 999_999),
            time_of_day(23, 59, 59, 999_999),
            "23:59:59.999999",
        ),
        (
            of("long", "timestamp-micros"),
            "2026-11-25T01:00:00.000001+01:00",
            datetime(2026, 11, 25, 0, 0, 0, 1, tzinfo=UTC),
            "2026-11-25T00:00:00.000001Z",
        ),
        (
            of("long", "timestamp-millis"),
            "1969-12-31T23:59:59.9990Z",
            datetime(1969, 12, 31, 23, 59, 59, 999_000, UTC),
            "1969-12-31T23:59:59.999000Z",
        ),
        (of("long", "local-timestamp-micros"), "2026-11-25T08:00:00", datetime(2026, 11, 25, 8), "2026-11-25T08:00:00"),  # noqa: DTZ001
        (
            of("long", "timestamp-nanos"),
            "2026-11-25T00:00:00.123456789Z",
            1_795_564_800_123_456_789,
            "2026-11-25T00:00:00.123456789Z",
        ),
        (of("long", "timestamp-nanos"), -1, -1, "1969-12-31T23:59:59.999999999Z"),
        (
            of("string", "uuid"),
            "6ba7b810-9dad-11d1-80b4-00c04fd430c8",
            uuid.UUID("6ba7b810-9dad-11d1-80b4-00c04fd430c8"),
            "6ba7b810-9dad-11d1-80b4-00c04fd430c8",
        ),
        (
            fixed(16, logicalType="time-uuid"),
            "0192f3a4-5b6c-7d8e-9f01-23456789abcd",
            uuid.UUID("0192f3a4-5b6c-7d8e-9f01-23456789abcd"),
            "0192f3a4-5b6c-7d8e-9f01-23456789abcd",
        ),
        (
            MONEY,
            {"amount": "12.5", "currency": "EUR"},
            {"amount": Decimal("12.50"), "currency": "EUR"},
            {"amount": "12.50", "currency": "EUR"},
        ),
        ("bytes", "\u0000\u00ff", b"\x00\xff", "\u0000\u00ff"),
        ("double", "-Infinity", -math.inf, "-Infinity"),
        ("double", 2**53, 2.0**53, 2.0**53),
        ("float", 0.5, 0.5, 0.5),
        (["null", "string"], "x", "x", "x"),
        (["null", "string"], {"string": "x"}, "x", "x"),
        (["string", "bytes"], {"bytes": "x"}, b"x", {"bytes": "x"}),
        (["int", "long"], 2**40, 2**40, 2**40),
        ([{"type": "map", "values": "int"}, "int"], {"map": {"int": 1}}, {"int": 1}, {"map": {"int": 1}}),
        (
            ["null", MONEY],
            {"amount": 1, "currency": "EUR"},
            {"amount": Decimal("1.00"), "currency": "EUR"},
            {"amount": "1.00", "currency": "EUR"},
        ),
        (record(field("int", default=7)), {}, {"f": 7}, {"f": 7}),
        (
            record(field(of("bytes", "decimal", precision=4, scale=2), default="\u0000\u00ff")),
            {},
            {"f": Decimal("2.55")},
            {"f": "2.55"},
        ),
        (record(field(["null", "R"], default=None)), {"f": {"f": None}}, {"f": {"f": None}}, {"f": {"f": None}}),
    ],
)
def test_value_of_a_type(schema: Any, value: Any, decoded: Any, as_json: Any):
    parsed = avro(schema)
    data = encode(parsed, value)
    assert decode(parsed, data) == decoded
    assert json.loads(avro_to_json(parsed, data)) == as_json
    assert json_to_avro(parsed, avro_to_json(parsed, data)) == data


@pytest.mark.parametrize(
    ("schema", "text", "path", "reason"),
    [
        ("int", "", "", "needs JSON"),
        ("int", "NaN", "", "NaN is not a number of JSON"),
        ("int", '{"a": 1, "a": 2}', "", "duplicate key"),
        ("int", "9" * 5_000, "", "needs JSON"),
        ("double", "1." + "0" * 2_000, "", "at most 1200 characters"),
        ("int", "[" * 5_000, "", "levels"),
        ("int", '"\\ud800"', "", "needs int, got a text"),
        ("string", '"\\ud800"', "", "lone surrogate"),
        ("int", "2147483648", "", "at most 32 bits"),
        ("long", "9223372036854775808", "", "at most 64 bits"),
        ("int", "1.0", "", "needs int, got a number"),
        ("int", "true", "", "needs int, got a boolean"),
        ("double", "9007199254740993", "", "more digits than a double holds"),
        ("double", "0.12345678901234567890", "", "more digits than a double holds"),
        ("double", "1e400", "", "needs a number that a double holds"),
        ("float", "0.123456789", "", "more digits than a float holds"),
        ("float", "1e39", "", "needs a number that a float holds"),
        ("bytes", '"\u0100"', "", "one character of U+0000 to U+00FF"),
        (fixed(2), '"abc"', "", "needs 2 bytes, got 3"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, '"B"', "", "needs a symbol of enum E"),
        (of("bytes", "decimal", precision=5, scale=2), "12.345", "", "at most 2 digits after the point"),
        (of("bytes", "decimal", precision=5, scale=2), "1000", "", "at most 3 digits before the point"),
        (of("bytes", "decimal", precision=5, scale=2), "1e999999999", "", "at most 3 digits before the point"),
        (of("bytes", "decimal", precision=5, scale=2), '"1e-999999999"', "", "at most 2 digits after the point"),
        (of("bytes", "decimal", precision=5, scale=2), '"NaN"', "", "needs a finite number"),
        (of("bytes", "decimal", precision=5, scale=2), '"x"', "", "needs a number as text"),
        (of("long", "timestamp-micros"), '"2026-11-25T00:00:00"', "", "needs a zone"),
        (of("long", "timestamp-micros"), '"2026-11-25T00:00:00.1234567Z"', "", "at most 6 digits after the second"),
        (of("long", "timestamp-millis"), '"2026-11-25T00:00:00.0001Z"', "", "at most 3 digits after the second"),
        (of("long", "timestamp-micros"), '"2026-02-30T00:00:00Z"', "", "needs a day and a time that exist"),
        (of("long", "timestamp-micros"), '"yesterday"', "", "as of RFC 3339"),
        (of("long", "local-timestamp-micros"), '"2026-11-25T00:00:00Z"', "", "without a zone"),
        (of("long", "timestamp-micros"), "9223372036854775807", "", "is not a timestamp-micros"),
        (of("long", "timestamp-nanos"), '"2262-04-11T23:47:16.854775808Z"', "", "is not a timestamp-nanos"),
        (of("long", "timestamp-nanos"), '"0001-01-01T00:00:00Z"', "", "is not a timestamp-nanos"),
        (of("int", "date"), '"2026-13-01"', "", "needs a date"),
        (of("int", "time-millis"), '"24:00:00"', "", "needs a time that exists"),
        (of("string", "uuid"), '"6ba7b810"', "", "needs a UUID"),
        (of("string", "time-uuid"), '"6ba7b810-9dad-41d1-80b4-00c04fd430c8"', "", "version 1 or 7, got version 4"),
        (of("string", "time-uuid"), '"ffffffff-ffff-7000-8000-000000000000"', "", "24 hours ahead"),
        (MONEY, '{"amount": 1, "currency": "euro"}', "/currency", "three capital letters"),
        (record(field("int")), "{}", "/f", "is required, but missing"),
        (record(field("int")), '{"f": 1, "g/h": 2}', "/g~1h", "is not a field of the schema"),
        (record(field({"type": "array", "items": "int"})), '{"f": [1, 2, "x"]}', "/f/2", "needs int, got a text"),
        (record(field({"type": "map", "values": "int"})), '{"f": {"k": null}}', "/f/k", "needs int, got null"),
        (["null", "int"], '"x"', "", "needs union of null, int, got a text"),
        (["null", record(field("int"))], '{"f": "x"}', "/f", "needs int, got a text"),
        (["null", "int"], '{"int": "x"}', "/int", "needs int, got a text"),
        (record(field(["null", "R"])), '{"f":' * 100 + "null" + "}" * 100, "*", "at most 64 levels"),
        ({"type": "array", "items": "int"}, "[" + "1," * 60_000 + "1]", "*", "at most 10000 values"),
        ("bytes", '"' + "x" * 2**20 + '"', "", "at most 1048576 bytes"),
    ],
)  # fmt: skip
def test_json_is_refused_with_place_and_reason(schema: Any, text: str, path: str, reason: str):
    parsed = avro(schema)
    begin = time.process_time()
    with pytest.raises(SchemaRejectedError) as refused:
        json_to_avro(parsed, text.encode(), NOW_US)
    assert time.process_time() - begin < 0.1
    assert reason in refused.value.reason
    assert path in ("*", refused.value.path)


def test_alternatives_in_unions_cost_a_bounded_time():
    """Each of eight records accepts each level, and fails at the last one: 8 to the power of 30 combinations."""
    branches = ["null", *(record(field("Root", name="a"), name=f"S{number}") for number in range(8))]
    text = '{"a": ' * 60 + '"x"' + "}" * 60
    begin = time.process_time()
    with pytest.raises(SchemaRejectedError, match="each counted once for each branch"):
        json_to_avro(avro(record(field(branches, name="a"), name="Root")), text.encode())
    assert time.process_time() - begin < 0.1


def test_event_of_many_optional_values_is_accepted():
    schema = avro({"type": "array", "items": ["null", "int", "string"]})
    value = ["x", 1, None] * 3_000
    assert decode(schema, json_to_avro(schema, json.dumps(value).encode())) == value


def test_events_of_json_schemas_are_no_avro():
    schema = parse(SchemaType.JSON, '{"type": "object"}')
    with pytest.raises(SchemaRejectedError, match="needs an Avro schema, not JSON"):
        decode(schema, b"")


def test_clock_of_a_time_uuid():
    first = uuid.uuid1()
    clock_us = time_uuid_clock_us(first.bytes)
    assert clock_us is not None
    assert abs(clock_us - time.time() * 1e6) < 60e6
    assert time_uuid_problem(first.bytes, clock_us) is None
    assert time_uuid_problem(first.bytes, clock_us - 25 * 3_600_000_000) == "its clock is more than 24 hours ahead"
    assert time_uuid_clock_us(uuid.UUID("0192f3a4-5b6c-7d8e-9f01-23456789abcd").bytes) == 0x0192F3A45B6C * 1_000
    assert time_uuid_clock_us(uuid.uuid4().bytes) is None


def test_unknown_logical_type_is_an_annotation():
    schema = avro(of("int", "my-type"))
    assert decode(schema, encode(schema, 7)) == 7
    assert json.loads(schema.document)["logicalType"] == "my-type"
