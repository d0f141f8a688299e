"""Events of bodies: five media types, the payload's own bytes, and valid items kept among invalid ones."""

import base64
import json
from typing import Any

import pytest

from dataplane.ingest.events import MAX_EVENTS, ReceivedEvent, read_events
from dataplane.ingest.problems import EventRejectedError

CE = {"specversion": "1.0", "id": "e-1", "source": "/shop", "type": "order.made"}
JSON, NDJSON = "application/json", "application/x-ndjson"


LIMIT = 256 * 1024


def read(media_type: str, body: bytes, ce: dict[str, str] | None = None) -> tuple[list[Any], bool]:
    events = read_events(media_type, body, ce or {}, LIMIT)
    items = list(events.items)
    assert len(items) == events.count
    return items, events.is_batch


def only(media_type: str, body: bytes, ce: dict[str, str] | None = None) -> ReceivedEvent:
    items, is_batch = read(media_type, body, ce)
    assert not is_batch
    assert len(items) == 1
    assert isinstance(items[0], ReceivedEvent)
    return items[0]


def kinds(items: list[Any]) -> list[str]:
    return [item.code if isinstance(item, EventRejectedError) else "ok" for item in items]


@pytest.mark.parametrize("media_type", [JSON, "Application/JSON; charset=utf-8", " application/json "])
def test_object_is_one_event_with_its_bytes_unchanged(media_type: str):
    event = only(media_type, b' {"b" : 1,  "a":2.50}\n')
    assert event.body == b' {"b" : 1,  "a":2.50}\n'
    assert event.value == {"b": 1, "a": 2.5}
    assert event.headers == [("content-type", b"application/json")]


@pytest.mark.parametrize("body", [b"3", b"null", b'"text"', b"true"])
def test_bare_value_is_an_event(body: bytes):
    assert only(JSON, body).body == body


def test_array_is_a_batch_of_the_bytes_of_its_items():
    items, is_batch = read(JSON, b' [ {"a": 1} , 2, [3 ] ]')
    assert is_batch
    assert [item.body for item in items] == [b'{"a": 1}', b"2", b"[3 ]"]


def test_empty_array_is_an_empty_batch():
    assert read(JSON, b"[]") == ([], True)


def test_ndjson_is_a_batch_of_lines():
    items, is_batch = read("application/x-ndjson", b'{"a":1}\r\n\n  \n{"a":2}\n{"a":3}')
    assert is_batch
    assert [item.body for item in items] == [b'{"a":1}', b'{"a":2}', b'{"a":3}']


def test_invalid_line_keeps_the_valid_ones():
    items, _ = read("application/x-ndjson", b'{"a":1}\n{"a":\n{"a":1,"a":2}\n{"a":\xff}\n[NaN]\n{"a":4}')
    assert kinds(items) == ["ok", "json-invalid", "json-duplicate-key", "json-invalid", "json-invalid", "ok"]


@pytest.mark.parametrize("body", [b'["\n"]', b"[1\n2]", b"[1\n2]\n3,4", b'{"a":1\n"b":2}', b"1,2\n[3\n4]"])
def test_each_line_must_be_json_although_the_lines_are_json_when_joined(body: bytes):
    items, _ = read(NDJSON, body)
    assert [item.code for item in items if isinstance(item, EventRejectedError)] == ["json-invalid"] * len(items)
    assert len(items) == body.count(b"\n") + 1


def test_invalid_item_of_an_array_keeps_the_valid_ones():
    deep = b"[" * 65 + b"]" * 65
    items, _ = read(JSON, b'[{"a":1},{"a":1,"a":2},' + deep + b',{"a":4}]')
    assert kinds(items) == ["ok", "json-duplicate-key", "json-too-deep", "ok"]


@pytest.mark.parametrize("body", [b"[1,", b"[1 2]", b"[1]x", b"[" * 100_000, b"[NaN]"])
def test_malformed_array_is_refused_as_a_whole(body: bytes):
    with pytest.raises(EventRejectedError) as refused:
        read(JSON, body)
    assert (refused.value.status, refused.value.code) == (400, "json-invalid")


@pytest.mark.parametrize(
    "media_type", [JSON, "application/x-ndjson", "application/cloudevents+json", "application/cloudevents-batch+json"]
)
def test_empty_body_is_refused(media_type: str):
    with pytest.raises(EventRejectedError) as refused:
        read(media_type, b"")
    assert (refused.value.status, refused.value.code) == (400, "json-invalid")


@pytest.mark.parametrize(
    "media_type", ["", "text/plain", "application/xml", "multipart/form-data", "json", "application/jsonx"]
)
def test_unsupported_media_type_is_refused(media_type: str):
    with pytest.raises(EventRejectedError) as refused:
        read(media_type, b"{}")
    assert (refused.value.status, refused.value.code) == (415, "media-type")


LARGE = b'"' + b"x" * LIMIT + b'"'


@pytest.mark.parametrize(
    ("media_type", "body", "ce"),
    [
        pytest.param(JSON, LARGE, {}, id="json"),
        pytest.param(JSON, b" " * LIMIT + b"1", {}, id="white space counts"),
        pytest.param(JSON, LARGE, CE, id="a binary CloudEvent"),
        pytest.param("application/cloudevents+json", b'{"a":' + b" " * 2 * LIMIT + b"1}", {}, id="an envelope"),
        pytest.param(
            "application/cloudevents+json", json.dumps({**CE, "data": "x" * LIMIT}).encode(), {}, id="data"
        ),
        pytest.param(
            "application/cloudevents+json",
            json.dumps({**CE, "data_base64": base64.b64encode(bytes(LIMIT + 1)).decode()}).encode(),
            {},
            id="data in base64",
        ),
    ],
)  # fmt: skip
def test_event_over_the_limit_is_refused(media_type: str, body: bytes, ce: dict[str, str]):
    with pytest.raises(EventRejectedError) as refused:
        read(media_type, body, ce)
    assert (refused.value.status, refused.value.code) == (413, "event-too-large")


@pytest.mark.parametrize(("media_type", "body"), [(JSON, b"[1," + LARGE + b",2]"), (NDJSON, b"1\n" + LARGE + b"\n2")])
def test_item_over_the_limit_is_refused_and_the_others_are_kept(media_type: str, body: bytes):
    items, _ = read(media_type, body)
    assert kinds(items) == ["ok", "event-too-large", "ok"]


@pytest.mark.parametrize(("media_type", "unit", "end"), [(JSON, b"1,", b"1]"), (NDJSON, b"1\n", b"1")])
def test_request_with_too_many_events_is_refused(media_type: str, unit: bytes, end: bytes):
    begin = end[1:].replace(b"]", b"[")
    assert len(read(media_type, begin + unit * (MAX_EVENTS - 1) + end)[0]) == MAX_EVENTS
    with pytest.raises(EventRejectedError) as refused:
        read(media_type, begin + unit * MAX_EVENTS + end)
    assert (refused.value.status, refused.value.code) == (413, "too-many-events")


def test_commas_within_events_are_not_counted_as_events():
    items, _ = read(JSON, b"[" + b"[1,2,3,4]," * 5_000 + b"0]")
    assert len(items) == 5_001
    assert (items[0].body, items[-1].body) == (b"[1,2,3,4]", b"0")


# -- CloudEvents 1.0 -----------------------------------------------------------------------------------------------


def test_structured_cloudevent_gives_its_data_and_its_attributes():
    text = json.dumps({**CE, "time": "2026-01-02T03:04:05Z", "partnumber": 3, "urgent": True, "data": {"total": 1}})
    event = only("application/cloudevents+json", text.encode())
    assert event.body == b'{"total": 1}'
    assert event.value == {"total": 1}
    assert event.time == "2026-01-02T03:04:05Z"
    assert dict(event.headers) == {
        "content-type": b"application/json",
        "ce_specversion": b"1.0",
        "ce_id": b"e-1",
        "ce_source": b"/shop",
        "ce_type": b"order.made",
        "ce_time": b"2026-01-02T03:04:05Z",
        "ce_partnumber": b"3",
        "ce_urgent": b"true",
    }


def test_structured_data_keeps_its_original_bytes():
    body = b'{"specversion":"1.0","id":"1","source":"s","type":"t","data": {"b" : 1.50}}'
    assert only("application/cloudevents+json", body).body == b'{"b" : 1.50}'


def test_binary_data_in_a_structured_cloudevent_is_decoded():
    envelope = {**CE, "datacontenttype": "image/png", "data_base64": base64.b64encode(b"\x89PNG").decode()}
    event = only("application/cloudevents+json", json.dumps(envelope).encode())
    assert event.body == b"\x89PNG"
    assert dict(event.headers)["content-type"] == b"image/png"


def test_null_attribute_counts_as_absent():
    event = only("application/cloudevents+json", json.dumps({**CE, "subject": None, "data": 1}).encode())
    assert "ce_subject" not in dict(event.headers)


@pytest.mark.parametrize(
    "change",
    [
        {"id": None}, {"id": ""}, {"source": None}, {"type": None}, {"specversion": None},
        {"subject": {"a": 1}}, {"subject": [1]}, {"subject": "a\r\nb"}, {"subject": "\x00"}, {"subject": "x" * 1_025},
        {"data_base64": "***"}, {"data_base64": "\u00e9"}, {"data_base64": 1234}, {"data_base64": ["AAAA"]},
        {"datacontenttype": "a\nb"}, {"datacontenttype": {"a": 1}}, {f"a{number}": 1 for number in range(100)},
    ],
    ids=str,
)  # fmt: skip
def test_invalid_cloudevent_is_refused(change: dict[str, Any]):
    envelope = {name: value for name, value in {**CE, **change}.items() if value is not None}
    with pytest.raises(EventRejectedError) as refused:
        read("application/cloudevents+json", json.dumps(envelope).encode())
    assert (refused.value.status, refused.value.code) == (400, "cloudevent-invalid")


def test_structured_cloudevent_must_be_an_object():
    with pytest.raises(EventRejectedError, match="object"):
        read("application/cloudevents+json", b"[]")


def test_cloudevents_batch_keeps_its_valid_items():
    batch = [{**CE, "data": 1}, {"id": "2"}, 3, {**CE, "data": 4}]
    items, is_batch = read("application/cloudevents-batch+json", json.dumps(batch).encode())
    assert is_batch
    assert kinds(items) == ["ok", "cloudevent-invalid", "cloudevent-invalid", "ok"]
    assert [items[0].body, items[3].body] == [b"1", b"4"]


@pytest.mark.parametrize("body", [b"{}", b"3", b"null"])
def test_cloudevents_batch_must_be_an_array(body: bytes):
    with pytest.raises(EventRejectedError) as refused:
        read("application/cloudevents-batch+json", body)
    assert (refused.value.status, refused.value.code) == (400, "json-invalid")


def test_binary_cloudevent_has_its_attributes_in_headers_and_any_body():
    event = only("application/octet-stream", b"\x00\xff", {**CE, "time": "2026-01-02T03:04:05Z"})
    assert (event.body, event.value, event.time) == (b"\x00\xff", None, "2026-01-02T03:04:05Z")
    assert dict(event.headers)["ce_type"] == b"order.made"
    assert dict(event.headers)["content-type"] == b"application/octet-stream"


@pytest.mark.parametrize("media_type", ["", JSON, "application/vnd.shop+json"])
def test_binary_cloudevent_of_json_is_decoded_strictly(media_type: str):
    assert only(media_type, b'{"a":1}', CE).value == {"a": 1}
    with pytest.raises(EventRejectedError) as refused:
        read(media_type, b'{"a":1,"a":2}', CE)
    assert refused.value.code == "json-duplicate-key"


def test_binary_cloudevent_without_a_required_attribute_is_refused():
    with pytest.raises(EventRejectedError, match="needs the attribute id"):
        read(JSON, b"{}", {"specversion": "1.0", "source": "/s", "type": "t"})


@pytest.mark.parametrize("name", ["x\r\nevil: 1", "x: y", "é", "X", "", "a" * 65, "x\0"])
def test_attribute_name_that_could_be_another_header_is_refused(name: str):
    event = {"specversion": "1.0", "id": "1", "source": "s", "type": "t", name: "v"}
    with pytest.raises(EventRejectedError, match="attribute names") as refused:
        read("application/cloudevents+json", json.dumps(event).encode())
    assert (refused.value.status, refused.value.code) == (400, "cloudevent-invalid")
