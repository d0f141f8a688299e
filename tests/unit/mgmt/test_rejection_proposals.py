"""A proposed version accepts the rejected events and all that earlier versions accepted."""

import json
from typing import Any

import pytest

from dataplane.refusals import TITLES
from dataplane.schemas.compatibility import incompatibilities
from dataplane.schemas.parse import parse
from dataplane.schemas.types import Compatibility, SchemaType
from dataplane.tables.event_types import EventMisfitError, EventTypeGate
from dataplane.tables.records import EventTypesRecord, RegisteredSchema, SubjectRecord
from mgmt.rejections.advice import REASONS, reason_of
from mgmt.rejections.proposals import propose

NOW_US = 1_795_564_800_000_000
LINE = {"type": "record", "name": "Line", "fields": [{"name": "sku", "type": "string"}]}
AVRO: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "namespace": "com.shop",
    "fields": [
        {"name": "id", "type": "string"},
        {"name": "total", "type": "double", "default": 0.0},
        {"name": "note", "type": ["string", "null"], "default": ""},
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["NEW"]}, "default": "NEW"},
        {"name": "lines", "type": {"type": "array", "items": LINE}, "default": []},
        {"name": "first", "type": ["null", "Line"], "default": None},
        {"name": "prices", "type": {"type": "map", "values": "long"}, "default": {}},
    ],
}
JSON: dict[str, Any] = {
    "type": "object",
    "required": ["id"],
    "additionalProperties": False,
    "properties": {
        "id": {"type": "string"},
        "total": {"type": "number"},
        "state": {"enum": ["NEW"]},
        "lines": {"type": "array", "items": {"$ref": "#/$defs/line"}},
    },
    "$defs": {"line": {"type": "object", "required": ["sku"], "properties": {"sku": {"type": "string"}}}},
}


def gate_of(kind: SchemaType, document: Any) -> EventTypeGate:
    schema = parse(kind, json.dumps(document))
    registered = RegisteredSchema(1, 1, kind, schema.fingerprint, schema.document)
    return EventTypeGate(
        EventTypesRecord("p", "shop", 1, "", {"": "s"}), {"s": SubjectRecord("t", "s", 1, [registered])}
    )


def misfit(kind: SchemaType, document: Any, event: Any) -> EventMisfitError | None:
    try:
        gate_of(kind, document).admit_json(json.dumps(event).encode(), event, "", NOW_US)
    except EventMisfitError as exc:
        return exc
    return None


@pytest.mark.parametrize(
    ("kind", "event", "words"),
    [
        pytest.param(SchemaType.AVRO, {}, "id becomes optional.", id="avro, missing field"),
        pytest.param(SchemaType.AVRO, {"id": 7}, "id may also be long.", id="avro, number"),
        pytest.param(SchemaType.AVRO, {"id": 7.5}, "id may also be double.", id="avro, fraction"),
        pytest.param(SchemaType.AVRO, {"id": "a", "total": "1"}, "total may also be string.", id="avro, text"),
        pytest.param(SchemaType.AVRO, {"id": "a", "total": None}, "total may also be null.", id="avro, null"),
        pytest.param(SchemaType.AVRO, {"id": "a", "note": True}, "note may also be boolean.", id="avro, union"),
        pytest.param(
            SchemaType.AVRO, {"id": "a", "email": "b"}, "The new optional field email of type string.", id="avro, new"
        ),
        pytest.param(SchemaType.AVRO, {"id": "a", "state": "PAID"}, "state may also be PAID.", id="avro, symbol"),
        pytest.param(
            SchemaType.AVRO,
            {"id": "a", "lines": [{"sku": "s", "n": 1}]},
            "The new optional field lines.*.n of type long.",
            id="avro, in an array",
        ),
        pytest.param(SchemaType.AVRO, {"id": "a", "first": {}}, "first.sku becomes optional.", id="avro, named type"),
        pytest.param(SchemaType.JSON, {}, "id becomes optional.", id="json, missing field"),
        pytest.param(SchemaType.JSON, {"id": 7}, "id may also be integer.", id="json, type"),
        pytest.param(SchemaType.JSON, {"id": None}, "id may also be null.", id="json, null"),
        pytest.param(
            SchemaType.JSON, {"id": "a", "n": [1]}, "The new optional field n of type array.", id="json, new field"
        ),
        pytest.param(SchemaType.JSON, {"id": "a", "state": "PAID"}, "state may also be PAID.", id="json, value"),
        pytest.param(
            SchemaType.JSON, {"id": "a", "lines": [{}]}, "lines.*.sku becomes optional.", id="json, definition"
        ),
    ],
)
def test_proposed_version_accepts_the_event_and_is_backward_compatible(kind: SchemaType, event: Any, words: str):
    document = AVRO if kind is SchemaType.AVRO else JSON
    found = misfit(kind, document, event)
    assert found is not None
    pointer = "/".join("*" if part.isdigit() else part for part in found.pointer.split("/"))
    made = propose(kind, document, pointer, found.reason, [event])
    assert made is not None
    assert made.words == words
    assert misfit(kind, made.document, event) is None
    new, old = parse(kind, json.dumps(made.document)), parse(kind, json.dumps(document))
    assert incompatibilities(Compatibility.BACKWARD, new, [(1, old)]) == ()
    assert misfit(kind, document, event) is not None, "the given document is unchanged"


@pytest.mark.parametrize(
    ("document", "pointer", "reason", "event"),
    [
        pytest.param(AVRO, "", "needs record com.shop.Order, got an array", [], id="another event"),
        pytest.param(AVRO, "/email", "is not a field of the schema", {"email": "***"}, id="masked value"),
        pytest.param(AVRO, "/email", "is not a field of the schema", {"email": {"a": 1}}, id="object"),
        pytest.param(AVRO, "/e-mail", "is not a field of the schema", {"e-mail": "a"}, id="no name of Avro"),
        pytest.param(AVRO, "/total", "needs a finite number", {"total": "NaN"}, id="another reason"),
        pytest.param(AVRO, "/elsewhere/id", "is required, but missing", {}, id="no such place"),
        pytest.param({"type": "string"}, "/id", "is not a field of the schema", {"id": 1}, id="no record"),
        pytest.param(AVRO, "/lines", "needs array of record, got a number", {}, id="no sample of the value"),
    ],
)
def test_nothing_is_proposed_that_cannot_be_derived(document: Any, pointer: str, reason: str, event: Any):
    assert propose(SchemaType.AVRO, document, pointer, reason, [event]) is None


@pytest.mark.parametrize(
    ("pointer", "reason", "event"),
    [
        ("/total", "the value is less than the minimum of 3", {"total": 1}),
        ("/total", 'the value is not of type "number"', {"total": "***"}),
        ("/nowhere/a", "is required, but missing", {}),
        ("", 'the value is not of type "object"', "***"),
    ],
)
def test_nothing_is_proposed_for_other_mismatches_of_a_json_schema(pointer: str, reason: str, event: Any):
    assert propose(SchemaType.JSON, JSON, pointer, reason, [event]) is None


def test_each_refusal_of_ingest_that_is_counted_has_a_reason_and_advice():
    of_keys = {"key-missing", "key-invalid", "key-expired"}
    of_requests = of_keys | {"not-found", "method-not-allowed", "pipe-closed", "pipe-starting"}
    others = {"quota-exceeded", "loop-detected", "internal"}
    assert set(REASONS) == set(TITLES) - of_requests - others
    assert reason_of("of a later release").words == "was rejected"
