"""Event types of a source: the type or the framing selects the version that an event must fit."""

import json
import time
from functools import partial
from typing import Any

import pytest

from dataplane.schemas.types import SchemaType
from dataplane.spec.effort import MAX_BYTES
from dataplane.tables.control import ControlTable
from dataplane.tables.event_types import (
    AdmittedEvent,
    CheckedContainer,
    EventMisfitError,
    EventTypeGate,
    EventTypeGates,
)
from dataplane.tables.records import EventTypesRecord, RegisteredSchema
from tests.support.cpu import cpu_s
from tests.support.event_types import (
    NOW_US,
    ORDER_1,
    ORDER_2,
    ORDERS,
    REFUNDS,
    confluent,
    container,
    event_types,
    gilt,
    registered,
    subject,
)
from tests.support.hostile_schemas import HostileMessage, long, messages

LIMIT_S = 0.05
NEEDS_TYPE = "needs a text in the field type, which names its type"
CE_TYPE = [("content-type", b"application/json"), ("ce_type", b"refund")]


def gate(type_from: str = "", **subjects: str) -> EventTypeGate:
    return EventTypeGate(event_types(type_from, subjects or None), {"orders": ORDERS, "refunds": REFUNDS})


def posted(of: EventTypeGate, value: Any, headers: Any = (), type_header: str = "") -> AdmittedEvent:
    return of.admit(json.dumps(value).encode(), value, list(headers), type_header, NOW_US)


def refused(of: EventTypeGate, value: Any, headers: Any = (), type_header: str = "") -> tuple[str, str, str]:
    with pytest.raises(EventMisfitError) as caught:
        posted(of, value, headers, type_header)
    return caught.value.code, caught.value.pointer, caught.value.reason


def test_json_is_checked_with_the_newest_version_and_stays_as_it_was_sent():
    body = b' {"total":12.50, "id": 1}'
    found = gate().admit(body, json.loads(body), [], "", NOW_US)
    assert (found.schema, found.body is body) == ("orders@2", True)
    assert refused(gate(), {"id": 1, "total": 12.345}) == ("schema", "/total", "needs at most 2 digits after the point")
    assert refused(gate(), {"id": 2**31})[:2] == ("schema", "/id")
    assert refused(gate(), {"id": 1, "more": 1}) == ("schema", "/more", "is not a field of the schema")
    assert refused(gate(), {}) == ("schema", "/id", "is required, but missing")


def test_number_keeps_every_digit_of_its_text():
    """A double has 0.1 + 0.2 for this text, and the schema nine digits."""
    body = b'{"id": 1, "total": 1234567.8900000000000001}'
    with pytest.raises(EventMisfitError, match="at most 2 digits"):
        gate().admit(body, json.loads(body), [], "", NOW_US)


@pytest.mark.parametrize(
    ("type_from", "value", "headers", "type_header"),
    [
        ("field:type", {"refund": 1, "type": "refund"}, (), ""),
        ("field:meta.type", {"refund": 1, "meta": {"type": "refund"}}, (), ""),
        ("header:ce-type", {"refund": 1}, CE_TYPE, ""),
        ("header:X-Event-Type", {"refund": 1}, (), "refund"),
    ],
)
def test_type_is_of_a_field_or_a_header(type_from: str, value: Any, headers: Any, type_header: str):
    of = gate(type_from, refund="refunds", order="orders")
    assert posted(of, value, headers, type_header).schema == "refunds@1"
    assert refused(of, value | {"refund": "1"}, headers, type_header)[:2] == ("schema", "/refund")


def test_header_of_the_type_is_named_in_lower_case():
    assert gate("header:X-Event-Type", a="orders").record_header == "x-event-type"
    assert gate("header:ce-type", a="orders").record_header == ""
    assert gate("field:type", a="orders").record_header == ""


@pytest.mark.parametrize(
    ("type_from", "value", "expected"),
    [
        ("field:type", {"id": 1}, ("event-type-missing", "/type", NEEDS_TYPE)),
        ("field:type", {"type": 7}, ("event-type-missing", "/type", NEEDS_TYPE)),
        ("field:type", ["type"], ("event-type-missing", "/type", NEEDS_TYPE)),
        ("field:a.b", {"a": {"b": "secret"}},
         ("event-type-unknown", "/a/b", "needs a text in the field a.b, which names its type: one of order, refund")),
        ("header:x-kind", {}, ("event-type-missing", "", "needs the header x-kind, which names its type")),
    ],
)  # fmt: skip
def test_missing_or_unknown_type_is_refused(type_from: str, value: Any, expected: tuple[str, str, str]):
    assert refused(gate(type_from, refund="refunds", order="orders"), value) == expected


def test_only_a_few_of_many_types_are_listed():
    of = gate("field:type", **{f"t{n:02}": "orders" for n in range(40)})
    assert refused(of, {"type": "x"})[2].endswith("one of t00, t01, t02, t03, t04 and 35 more")


@pytest.mark.parametrize(
    ("data", "name", "body"),
    [
        (confluent(7, ORDER_1, {"id": 5}), "orders@1", {"id": 5}),
        (confluent(8, ORDER_2, {"id": 5, "total": "1.50"}), "orders@2", {"id": 5, "total": "1.50", "type": None}),
        (gilt(ORDER_1, {"id": 5}), "orders@1", {"id": 5}),
        (gilt(ORDER_2, {"id": 5}), "orders@2", {"id": 5, "total": None, "type": None}),
    ],
)
def test_framed_event_names_its_version_and_becomes_json(data: bytes, name: str, body: Any):
    found = gate("field:type", order="orders").admit(data, None, [], "", NOW_US)
    assert (found.schema, found.value, json.loads(found.body)) == (name, body, body)


@pytest.mark.parametrize(
    ("data", "code", "reason"),
    [
        (confluent(9, ORDER_1, {"id": 5}), "schema-unknown", "needs JSON without a framing, because refunds@1"),
        (confluent(1, ORDER_1, {"id": 5}), "schema-unknown", "needs a schema that is one of the newest versions"),
        (gilt({"type": "int"}, 5), "schema-unknown", "needs a schema that is one of the newest versions"),
        (container(ORDER_1, {"id": 5}), "avro-invalid", "needs one event here"),
        (b"\x00\x00", "avro-invalid", "needs 4 bytes"),
        (confluent(7, ORDER_1, {"id": 5}) + b"x", "schema", "1 bytes follow the value"),
    ],
)
def test_framed_event_of_another_schema_is_refused(data: bytes, code: str, reason: str):
    with pytest.raises(EventMisfitError) as caught:
        gate("field:t", o="orders", r="refunds").admit(data, None, [], "", NOW_US)
    assert (caught.value.code, reason in caught.value.reason) == (code, True), caught.value


def test_body_that_is_neither_json_nor_framed_is_refused():
    for headers, code in (([], "schema"), ([("content-type", b"avro/binary; x=y")], "avro-invalid")):
        with pytest.raises(EventMisfitError) as caught:
            gate().admit(b"plain", None, headers, "", NOW_US)
        assert caught.value.code == code


def test_fingerprint_of_two_versions_is_of_the_newest():
    """Logical types and defaults are not part of the fingerprint."""
    one = {"type": "record", "name": "R", "fields": [{"name": "at", "type": "long"}]}
    two = {
        "type": "record",
        "name": "R",
        "fields": [{"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}}],
    }
    both = subject("orders", registered(1, 1, one), registered(2, 2, two))
    of = EventTypeGate(event_types(""), {"orders": both})
    assert of.admit(gilt(one, {"at": 0}), None, [], "", NOW_US)[::2] == ("orders@2", {"at": "1970-01-01T00:00:00Z"})
    assert of.admit(confluent(1, one, {"at": 0}), None, [], "", NOW_US)[::2] == ("orders@1", {"at": 0})
    for document, name in ((one, "orders@1"), (two, "orders@2")):
        (found,) = of.open_container(container(document, {"at": 0})).read(NOW_US)
        assert isinstance(found, AdmittedEvent)
        assert found.schema == name


def events(found: CheckedContainer) -> list[Any]:
    return [one.value if isinstance(one, AdmittedEvent) else one.code for one in found.read(NOW_US)]


def test_container_must_have_a_schema_of_the_source():
    found = gate().open_container(container(ORDER_1, {"id": 1}, {"id": 2}, codec="deflate"))
    assert (found.count, events(found)) == (2, [{"id": 1}, {"id": 2}])
    for data, code in ((container({"type": "int"}, 5), "schema-unknown"), (b"Obj\x01", "avro-invalid")):
        with pytest.raises(EventMisfitError) as caught:
            gate().open_container(data)
        assert caught.value.code == code


def test_clock_of_a_time_uuid_is_compared_with_ours():
    schema = {
        "type": "record",
        "name": "R",
        "fields": [{"name": "id", "type": {"type": "string", "logicalType": "time-uuid"}}],
    }
    of = EventTypeGate(event_types(""), {"orders": subject("orders", registered(1, 1, schema))})
    for ahead_us, fits in ((0, True), (25 * 3_600_000_000, False)):
        text = f"{(NOW_US + ahead_us) // 1_000:012x}7000800000000000000a"
        value = {"id": f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"}
        data = confluent(1, schema, value)
        for body, given in ((json.dumps(value).encode(), value), (data, None)):
            if fits:
                assert of.admit(body, given, [], "", NOW_US).value == value
            else:
                with pytest.raises(EventMisfitError, match="/id: its clock is more than 24 hours ahead"):
                    of.admit(body, given, [], "", NOW_US)


def test_subject_that_has_not_been_published_is_not_loaded():
    of = EventTypeGate(event_types("field:t", {"o": "orders", "r": "refunds"}), {"refunds": REFUNDS})
    for body, value in ((b'{"t":"o"}', {"t": "o"}), (confluent(7, ORDER_1, {"id": 1}), None)):
        with pytest.raises(EventMisfitError) as caught:
            of.admit(body, value, [], "", NOW_US)
        assert (caught.value.code, caught.value.is_unloaded) == ("unavailable", True)
    assert posted(of, {"t": "r", "refund": 1}).schema == "refunds@1"


@pytest.mark.parametrize("kind", list(SchemaType))
def test_schema_that_cannot_run_here_refuses_no_json(kind: SchemaType, caplog: pytest.LogCaptureFixture):
    odd = RegisteredSchema(3, 1, kind, "ab", '{"type": "of the next release"}')
    of = EventTypeGate(event_types(""), {"orders": subject("orders", odd)})
    assert posted(of, {"id": "x"}).schema == ""
    assert "orders@1 is not enforced" in caplog.text
    with pytest.raises(EventMisfitError, match="needs"):
        of.admit(b"\x00\x00\x00\x00\x03", None, [], "", NOW_US)


def test_gate_is_compiled_again_only_if_its_records_changed():
    table = ControlTable()
    gates = EventTypeGates(table)
    assert gates.find("t", "p", "shop") is None
    for record in (ORDERS, event_types("")):
        table.apply(record)
    first = gates.find("t", "p", "shop")
    assert first is not None
    table.apply(REFUNDS)
    assert gates.find("t", "p", "shop") is first
    assert gates.find("t", "p", "other") is None
    table.apply(subject("orders", registered(7, 1, ORDER_1), version=2))
    second = gates.find("t", "p", "shop")
    assert second is not None
    assert second is not first
    assert posted(second, {"id": 1}).schema == "orders@1"
    table.apply(EventTypesRecord("p", "shop", 2, "", {}))
    assert gates.find("t", "p", "shop") is None, "without subjects the source takes all events"


MESSAGES = messages()


@pytest.mark.parametrize("framing", ["confluent", "gilt"])
def test_hostile_messages_are_refused_with_path_and_reason_in_time(framing: str):
    assert len(MESSAGES) >= 200
    for case in MESSAGES:
        version = registered(5, 1, case.schema)
        of = EventTypeGate(event_types(""), {"orders": subject("orders", version)})
        head = b"\x00\x00\x00\x00\x05" if framing == "confluent" else b"\x81" + bytes.fromhex(version.fingerprint)
        spent = cpu_s(partial(refuses, of, head + case.data, case), LIMIT_S)
        assert spent < LIMIT_S, case.title


def refuses(of: EventTypeGate, data: bytes, case: HostileMessage) -> None:
    with pytest.raises(EventMisfitError) as caught:
        of.admit(data, None, [], "", NOW_US)
    assert caught.value.code == "schema"
    assert caught.value.pointer.startswith(case.path.rstrip("*")), case.title
    assert case.reason in caught.value.reason, case.title


def test_hostile_messages_in_a_container_are_refused_one_by_one():
    for case in MESSAGES:
        begin = time.thread_time()
        of = EventTypeGate(event_types(""), {"orders": subject("orders", registered(5, 1, case.schema))})
        file = container(case.schema)
        sync = file[-16:]
        block = long(1) + long(len(case.data)) + case.data + sync
        if len(file + block) > MAX_BYTES:
            with pytest.raises(EventMisfitError, match="needs at most 1048576 bytes"):
                of.open_container(file + block)
            continue
        found = of.open_container(file + block)
        assert events(found) == ["schema"], case.title
        assert time.thread_time() - begin < 10 * LIMIT_S
