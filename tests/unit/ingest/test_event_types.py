"""Events of a source with event types: each has its own verdict, refused ones are not stored, Avro becomes JSON."""

import asyncio
import base64
import json
import uuid
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from dataplane.ingest.app import IngestApp
from dataplane.ingest.feeds import FeedKey, record_of
from dataplane.ledger.rejections import RejectionReport
from dataplane.record_limits import ENVELOPE_BYTES
from dataplane.spec import parse_pipe_spec
from dataplane.spec.keys import key_digest
from dataplane.tables.records import (
    EventTypesRecord,
    PipeRecord,
    SchemaRecord,
)
from tests.support.event_types import (
    ORDER_1,
    ORDER_2,
    confluent,
    container,
    event_types,
    gilt,
    registered,
    subject,
)
from tests.support.hostile_schemas import messages
from tests.support.http_exchange import MemoryExchange
from tests.support.typed_ingest import (
    CE,
    DOCUMENT,
    KEY,
    PLAN,
    TYPED,
    Opened,
    fed,
)

# -- posted --------------------------------------------------------------------------------------------------------


def test_each_event_of_a_batch_has_its_own_verdict_and_only_those_that_fit_are_stored(opened: Opened):
    ingest = opened(TYPED)
    lines = [
        b'{"type":"order", "id":1}',
        b'{"type":"order","id":"secret"}',
        b'{"type":"refund","refund":1}',
        b'{"id":1}',
        b'{"type":"secret"}',
        b'{"type":"order","id":2,"id":2}',
        b'{"type":"refund"}',
    ]
    for media_type, body in (
        ("application/x-ndjson", b"\n".join(lines)),
        ("application/json", b"[%b]" % b",".join(lines)),
    ):
        ingest.stored.records.clear()
        answer = ingest.post(body, media_type)
        assert (answer.status, answer.answer["accepted"], answer.answer["rejected"]) == (207, 2, 5)
        found = [(one["status"], one.get("code", ""), one.get("pointer", "")) for one in answer.answer["items"]]
        assert found == [
            (202, "", ""),
            (422, "schema", "/id"),
            (202, "", ""),
            (422, "event-type-missing", "/type"),
            (422, "event-type-unknown", "/type"),
            (400, "json-duplicate-key", ""),
            (422, "schema", "/refund"),
        ]
        assert "secret" not in str(answer.answer)
        assert [(body, meta.schema) for body, meta, _ in ingest.stored.records] == [
            (lines[0], "orders@2"),
            (lines[2], "refunds@1"),
        ]


@pytest.mark.parametrize(
    ("media_type", "body"),
    [
        ("avro/binary", confluent(7, ORDER_1, {"id": 5})),
        ("application/avro; charset=x", gilt(ORDER_1, {"id": 5})),
        ("application/vnd.apache.avro", container(ORDER_1, {"id": 5})),
        ("application/octet-stream", container(ORDER_1, {"id": 5}, codec="deflate")),
    ],
)
def test_avro_is_stored_as_json_with_the_key_of_its_source(opened: Opened, media_type: str, body: bytes):
    ingest = opened(event_types(""))
    assert ingest.post(body, media_type).status == 202
    ((stored, meta, headers),) = ingest.stored.records
    assert (stored, meta.schema, meta.misfit) == (b'{"id":5}', "orders@1", "")
    assert headers == {"content-type": b"application/json"}


def test_container_is_a_batch_with_a_result_for_each_item(opened: Opened):
    ingest = opened(event_types(""))
    whole = container(ORDER_1, {"id": 1}, {"id": 2}, {"id": 3})
    head, block = whole[: -16 - 3 - 2], b"\x06\x06\x02"
    assert whole == head + block + b"\x04\x06" + whole[-16:]
    broken = head + b"\x06" + b"\x0e" + b"\x02" + b"\xff\xff\xff\xff\x7f" + b"\x06" + whole[-16:]
    answer = ingest.post(broken, "avro/binary")
    assert answer.status == 207
    found = [(one["status"], one.get("pointer", ""), one.get("detail", "")) for one in answer.answer["items"]]
    assert found == [
        (202, "", ""),
        (422, "/id", "/id: has a number of more than 32 bits"),
        (422, "", "the event: cannot be read, because an item before it in the same block is invalid"),
    ]
    assert ingest.bodies() == [{"id": 1}]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        pytest.param(b"{}", "avro-invalid", id="JSON"),
        pytest.param(b"", "avro-invalid", id="nothing"),
        pytest.param(b"\x00\x01", "avro-invalid", id="cut-off id"),
        pytest.param(b"Obj\x01", "avro-invalid", id="cut-off container"),
        pytest.param(confluent(99, ORDER_1, {"id": 5}), "schema-unknown", id="unknown id"),
        pytest.param(gilt({"type": "int"}, 5), "schema-unknown", id="unknown fingerprint"),
        pytest.param(container({"type": "int"}, 5), "schema-unknown", id="unknown schema in container"),
        pytest.param(confluent(7, ORDER_1, {"id": 5})[:-1], "schema", id="cut-off value"),
    ],
)
def test_avro_that_cannot_be_read_is_refused_with_a_reason(opened: Opened, body: bytes, code: str):
    ingest = opened(event_types(""))
    answer = ingest.post(body, "avro/binary")
    assert (answer.status, answer.answer["code"]) == (422, code)
    assert answer.answer["type"] == f"http://127.0.0.1:8800/help/errors/{code}/"
    assert ingest.stored.records == []


def test_source_without_event_types_takes_json_as_before_and_refuses_avro(opened: Opened):
    for ingest in (opened(), opened(event_types(version=2)), opened()):
        ingest.replica.table.apply(EventTypesRecord("p", "shop", 3, "", {}))
        answer = ingest.post(confluent(7, ORDER_1, {"id": 5}), "avro/binary")
        assert (answer.status, answer.answer["code"]) == (415, "media-type")
        assert "add the event types, or send JSON" in answer.answer["detail"]
        assert ingest.post(b'{"any": 1}').status == 202
        assert ingest.stored.records[-1][1].schema == ""
        assert ingest.post(b"\x00", "application/octet-stream", **CE).status == 202, "any data of a CloudEvent"


def test_cloudevent_is_of_the_type_of_its_attribute_and_may_carry_avro(opened: Opened):
    ingest = opened(event_types("header:ce-type", {"order": "orders"}))
    assert ingest.post(b'{"id":1}', **CE).status == 202
    assert ingest.post(gilt(ORDER_1, {"id": 2}), "application/avro", **CE).status == 202
    envelope = {"specversion": "1.0", "id": "1", "source": "s", "type": "order"}
    data = base64.b64encode(confluent(7, ORDER_1, {"id": 3})).decode()
    more = {"datacontenttype": "avro/binary", "data_base64": data}
    assert ingest.post(json.dumps(envelope | more).encode(), "application/cloudevents+json").status == 202
    assert (
        ingest.post(json.dumps(envelope | {"data": {"id": 4}}).encode(), "application/cloudevents+json").status == 202
    )
    assert ingest.bodies() == [{"id": 1}, {"id": 2}, {"id": 3}, {"id": 4}]
    assert {headers["content-type"] for _, _, headers in ingest.stored.records} == {b"application/json"}
    assert {headers["ce_type"] for _, _, headers in ingest.stored.records} == {b"order"}
    other = ingest.post(b'{"id":1}', **CE | {"ce-type": "invoice"})
    assert (other.status, other.answer["code"]) == (422, "event-type-unknown")
    assert ingest.post(b"Obj\x01", "avro/binary", **CE).answer["code"] == "avro-invalid"


def test_header_of_the_request_is_the_type_of_all_its_events(opened: Opened):
    ingest = opened(event_types("header:X-Event-Type", {"order": "orders", "refund": "refunds"}))
    assert ingest.post(b'[{"refund":1},{"refund":2}]', x_event_type="refund").status == 202
    missing = ingest.post(b'{"refund":1}')
    assert (missing.status, missing.answer["code"]) == (422, "event-type-missing")


def test_batch_without_events_is_accepted(opened: Opened):
    ingest = opened(event_types(""))
    for body, media_type in ((container(ORDER_1), "avro/binary"), (b"[]", "application/json")):
        answer = ingest.post(body, media_type)
        assert (answer.status, answer.answer["accepted"], answer.answer["items"]) == (202, 0, [])
    assert ingest.stored.records == []


def test_schema_of_the_source_applies_too(opened: Opened):
    ingest = opened(event_types(""), SchemaRecord("p", "shop", 1, '{"properties": {"id": {"maximum": 9}}}'))
    assert ingest.post(gilt(ORDER_1, {"id": 9}), "avro/binary").status == 202
    answer = ingest.post(gilt(ORDER_1, {"id": 10}), "avro/binary")
    assert (answer.status, answer.answer["code"], answer.answer["pointer"]) == (422, "schema", "/id")


def test_newest_version_applies_at_once(opened: Opened):
    ingest = opened(event_types(""))
    assert ingest.post(b'{"id":1,"more":1}').status == 422
    more = ORDER_2 | {"fields": [*ORDER_2["fields"], {"name": "more", "type": "int", "default": 0}]}
    ingest.replica.table.apply(subject("orders", registered(8, 2, ORDER_2), registered(10, 3, more), version=2))
    assert ingest.post(b'{"id":1,"more":1}').status == 202
    assert ingest.stored.records[-1][1].schema == "orders@3"


def test_event_waits_for_a_subject_that_has_not_been_loaded(opened: Opened):
    answer = opened(event_types("", {"": "later"})).post(b"{}")
    assert (answer.status, answer.answer["code"]) == (503, "unavailable")


def test_event_that_is_too_large_as_json_is_refused(opened: Opened):
    schema = {"type": "bytes"}
    ingest = opened(event_types(""), subject("orders", registered(7, 1, schema), version=2))
    assert ingest.post(confluent(7, schema, b"\x00" * 50_000), "avro/binary").status == 413
    assert ingest.post(confluent(7, schema, b"a" * 50_000), "avro/binary").status == 202


def test_other_requests_run_while_a_large_container_is_read(opened: Opened):
    ingest, turns = opened(event_types("")), 0
    body = container(ORDER_1, *({"id": number} for number in range(5_000)))

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def work() -> MemoryExchange:
        beside = asyncio.create_task(others())
        exchange = MemoryExchange(body, {"authorization": f"Bearer {KEY}", "content-type": "avro/binary"})
        await IngestApp(ingest.replica)(exchange.request)
        beside.cancel()
        return exchange

    assert ingest.run(work).answer["accepted"] == 5_000
    assert turns >= 3


def test_nothing_of_hostile_messages_is_stored(opened: Opened):
    ingest, refused = opened(event_types("")), 0
    for number, case in enumerate(messages(), 2):
        ingest.replica.table.apply(subject("orders", registered(5, 1, case.schema), version=number))
        answer = ingest.post(b"\x00\x00\x00\x00\x05" + case.data, "avro/binary")
        assert answer.status in (422, 413), case.title
        assert answer.answer["detail"]
        refused += 1
    assert refused >= 200
    assert ingest.stored.records == []


# -- read from Kafka -----------------------------------------------------------------------------------------------


def test_record_that_does_not_fit_is_stored_with_the_reason(opened: Opened):
    types = event_types("header:x-type", {"order": "orders", "refund": "refunds"}, source="old")
    ingest = opened(types)
    avro = confluent(8, ORDER_2, {"id": 6})
    statuses = ingest.feed(
        fed(b'{"id":1}', {"id": 1}, type_header="order"),
        fed(b'{"id":"x"}', {"id": "x"}, type_header="order"),
        fed(avro),
        fed(avro[:-1]),
        fed(b"\xff\xfe", type_header="order"),
        fed(b'{"id":1}', {"id": 1}),
    )
    assert statuses == [202] * 6
    assert [(meta.schema, meta.misfit, meta.event_type) for _, meta, _ in ingest.stored.records] == [
        ("orders@2", "", ""),
        ("", "/id: needs int, got a text", "order"),
        ("orders@2", "", ""),
        ("", "/type: the bytes end in the middle of the value", ""),
        ("", "the event: needs JSON, or Avro in one of its framings", "order"),
        ("", "the event: needs the header x-type, which names its type", ""),
    ]
    assert ingest.stored.records[2][0] == b'{"id":6,"total":null,"type":null}'
    assert ingest.stored.records[3][0] == avro[:-1]


def test_record_that_is_too_large_as_json_does_not_stop_its_feed(opened: Opened):
    schema = {"type": "bytes"}
    ingest = opened(event_types("", source="old"), subject("orders", registered(7, 1, schema), version=2))
    body = confluent(7, schema, b"\x00" * 50_000)
    assert ingest.feed(fed(body)) == [202]
    ((stored, meta, _),) = ingest.stored.records
    assert (stored, meta.misfit) == (body, "the event: needs at most 262144 bytes as JSON")


def test_reason_is_stored_with_headers_of_the_largest_size(opened: Opened):
    ingest = opened(event_types("", source="old"))
    headers = [(f"ce_{number:03}", b"x" * 1_000) for number in range(ENVELOPE_BYTES // 1_030)]
    headers.append(("ce_last", b"x" * 60))
    sizes = [60, *range(400, 1_024, 20)]
    accepted = 0
    for size in sizes:
        headers[-1] = ("ce_last", b"x" * size)
        accepted += ingest.feed(fed(b"{}", {}, headers)) == [202]
    assert 1 <= accepted <= len(sizes)
    assert {meta.misfit for _, meta, _ in ingest.stored.records} == {"/id: is required, but missing"}


def test_feed_waits_for_a_subject_only_while_the_control_topic_is_read(opened: Opened):
    ingest = opened(event_types("", {"": "later"}, source="old"))
    ingest.replica._reader.at_end = False
    assert ingest.feed(fed(b"{}", {})) == [503]
    ingest.replica._reader.at_end = True
    assert ingest.feed(fed(b"{}", {})) == [202]
    assert "has not been loaded" in ingest.stored.records[-1][1].misfit


def test_feed_reads_the_header_that_names_the_type(opened: Opened):
    want = FeedKey("p", "old", "t", "orders", "main", "earliest")
    ingest = opened(event_types("header:X-Type", {"order": "orders"}, source="old"))
    assert ingest.replica.routes.type_header(want) == "x-type"
    given = [("x-type", b"old"), ("X-Type", b"order"), ("content-type", b"application/json")]
    message: Any = SimpleNamespace(
        topic=lambda: "orders", partition=lambda: 0, offset=lambda: 1, key=lambda: None, value=lambda: b"{}",
        timestamp=lambda: (1, 1), headers=lambda: given,
    )  # fmt: skip
    assert record_of(message, want, "x-type").event.type_header == "order"
    assert record_of(message, want).event.type_header == ""


# -- reported ------------------------------------------------------------------------------------------------------

MASKED = msgspec.structs.replace(
    PLAN, revision=2, spec=parse_pipe_spec({**DOCUMENT, "normalize": [{"op": "mask", "path": "contact.email"}]})
)


def kinds(reports: list[RejectionReport]) -> list[tuple[str, str, str, int]]:
    return [(one.event_type, one.code, one.pointer, one.events) for one in reports]


def test_refused_events_are_reported_by_type_reason_place_and_sender(opened: Opened):
    ingest = opened(TYPED)
    lines = [
        b'{"type":"order","id":1}',
        b'{"type":"order","id":"a"}',
        b'{"type":"order","id":"b"}',
        b'{"type":"refund"}',
        b'{"type":"unknown"}',
        b'{"id":1}',
        b"{",
    ]
    assert ingest.post(b"\n".join(lines), "application/x-ndjson").status == 207
    reports = ingest.reported()
    assert kinds(reports) == [
        ("order", "schema", "/id", 2),
        ("refund", "schema", "/refund", 1),
        ("unknown", "event-type-unknown", "/type", 1),
        ("", "event-type-missing", "/type", 1),
        ("", "json-invalid", "", 1),
    ]
    assert {(one.pipe, one.source, one.sender) for one in reports} == {("p", "shop", key_digest(KEY)[:16])}
    assert reports[0].detail == "/id: needs int, got a text"
    assert [one.body for one in reports[0].samples] == ['{"type":"order","id":"a"}', '{"type":"order","id":"b"}']
    assert reports[0].samples[0].at_us // 60_000_000 == reports[0].minute
    assert ingest.reported() == []


@pytest.mark.parametrize(
    ("media_type", "body", "kind"),
    [
        pytest.param("application/json", b"{", ("", "json-invalid", "", 1), id="not JSON"),
        pytest.param("text/plain", b"{}", ("", "media-type", "", 1), id="another media type"),
        pytest.param("application/json", b" " * 9_000_000, ("", "body-too-large", "", 1), id="too large"),
        pytest.param(
            "application/vnd.apache.avro", confluent(9, ORDER_1, {"id": 1}), ("", "schema-unknown", "", 1), id="JSON id"
        ),
        pytest.param(
            "application/vnd.apache.avro",
            confluent(8, ORDER_2, {"id": 1})[:-1],
            ("order", "schema", "/type", 1),
            id="Avro cut off",
        ),
    ],
)
def test_request_that_is_refused_as_a_whole_is_reported_once(
    opened: Opened, media_type: str, body: bytes, kind: tuple[str, str, str, int]
):
    ingest = opened(TYPED)
    assert ingest.post(body, media_type).status >= 400
    assert kinds(ingest.reported()) == [kind]


def test_event_of_a_container_is_reported_under_its_type(opened: Opened):
    schema = {"type": "string", "logicalType": "time-uuid"}
    ingest = opened(TYPED, subject("orders", registered(7, 1, schema), version=2))
    assert ingest.post(container(schema, str(uuid.UUID(int=1))), "application/vnd.apache.avro").status == 422
    ((event_type, code, _, events),) = kinds(ingest.reported())
    assert (event_type, code, events) == ("order", "schema", 1)


def test_accepted_events_and_those_that_a_retry_repeats_are_not_reported(opened: Opened):
    ingest = opened(event_types("", {"": "later"}))
    assert ingest.post(b'{"id":1}').status == 503
    assert ingest.reported() == []
    ingest = opened(TYPED)
    assert ingest.post(b'{"type":"order","id":1}').status == 202
    assert ingest.reported() == []


def test_records_of_a_kafka_source_are_reported_when_they_are_stored(opened: Opened):
    ingest = opened(event_types("header:X-Type", {"order": "orders"}, source="old"))
    assert ingest.feed(fed(b'{"id":"a"}', {"id": "a"}, type_header="order"), fed(b"{}", {})) == [202, 202]
    reports = ingest.reported()
    assert kinds(reports) == [("order", "schema", "/id", 1), ("", "event-type-missing", "", 1)]
    assert {(one.source, one.sender) for one in reports} == {("old", "kafka")}
    ingest.replica._reader.at_end = False
    ingest = opened(event_types("", {"": "later"}, source="old"))
    ingest.replica._reader.at_end = False
    assert ingest.feed(fed(b"{}", {})) == [503]
    assert ingest.reported() == [], "the feed offers it again"


def test_samples_show_no_value_that_a_running_revision_masks(opened: Opened):
    ingest = opened(TYPED, MASKED, PipeRecord("p", 2, "t", "orders", "c1", "active", [(2, 50), (1, 50)]))
    ingest.post(b'{"type":"order","id":1,"contact":{"email":"bob@example.com"},"mail":"bob"}')
    ((shown,),) = [one.samples for one in ingest.reported()]
    assert json.loads(shown.body) == {"type": "order", "id": 1, "contact": "***", "mail": "bob"}


def test_unknown_type_in_a_masked_field_is_not_reported(opened: Opened):
    hidden = msgspec.structs.replace(
        MASKED, spec=parse_pipe_spec({**DOCUMENT, "normalize": [{"op": "mask", "path": "type"}]})
    )
    ingest = opened(TYPED, hidden, PipeRecord("p", 2, "t", "orders", "c1", "active", [(2, 100)]))
    ingest.post(b'{"type":"4111111111111111"}')
    (report,) = ingest.reported()
    assert report.event_type == "***"
    assert "4111" not in str(report)
