"""Batches: the choice of members, the request, and the result of each member in a response."""

from typing import Any

import msgspec
import pytest

from dataplane.ledger.meta import MessageMeta
from dataplane.spec import BatchSettings
from dataplane.transmit.deliveries.batches import batch_body, batch_id, next_batch, read_items
from dataplane.transmit.deliveries.delivery import Delivery
from dataplane.transmit.deliveries.settled_units import UnitRound

BATCH = BatchSettings(max_events=3, max_bytes=1_024, max_wait_ms=1_000)
IDS = ["a", "b", "c"]


def send(number: int, body: bytes = b"{}", *, taken_s: float = 0.0, together: int = 0, headers: Any = ()) -> Delivery:
    meta = MessageMeta(1, f"id-{number}", "p", 1, "shop", 0, 0, 0, position=number, destination="crm")
    unit = UnitRound("p", "crm", 0, 0, number)
    target: Any = None
    ours = ("penstock-meta", b"")
    return Delivery(unit, meta, target, [ours, *headers], None, body, [(0, number)], taken_s, 0, together=together)


@pytest.mark.parametrize(
    ("queue", "now_s", "count"),
    [
        pytest.param([], 0.0, 0, id="nothing"),
        pytest.param([send(1), send(2)], 0.9, 0, id="worth waiting for more"),
        pytest.param([send(1), send(2)], 1.0, 2, id="the oldest has waited"),
        pytest.param([send(1), send(2, taken_s=9.0)], 1.0, 2, id="only the oldest counts"),
        pytest.param([send(n) for n in range(3)], 0.0, 3, id="enough of them"),
        pytest.param([send(n) for n in range(9)], 0.0, 3, id="no more than enough"),
        pytest.param([send(1, b"x" * 700), send(2, b"x" * 700)], 0.0, 1, id="enough bytes"),
        pytest.param([send(1, b"x" * 9_000)], 0.0, 1, id="one that is too large goes alone"),
        pytest.param([send(1, together=7), send(2, together=7), send(3)], 0.0, 2, id="together again, at once"),
        pytest.param([send(1, together=7), send(2, together=8)], 0.0, 1, id="with nobody else"),
        pytest.param([send(1), send(2, together=8)], 0.0, 1, id="nor others with them"),
    ],
)
def test_batch_is_sent_when_one_limit_is_reached(queue: list[Delivery], now_s: float, count: int):
    assert next_batch(queue, BATCH, now_s) == queue[:count]


def test_batch_id_is_derived_from_its_members():
    assert batch_id(IDS) == batch_id(list(IDS))
    assert len({batch_id(IDS), batch_id(IDS[:2]), batch_id(IDS[::-1]), batch_id(["a,b", "c"])}) == 4


BODIES = [b'{"a": 1}', b"[\n  1,\r\n  2\n]", b"plain \xe2\x82\xac text", b"\xff\x00"]
AS_JSON = [{"a": 1}, [1, 2], "plain \u20ac text", {"data_base64": "/wA="}]


def test_json_array_contains_every_body_unchanged():
    members = [send(n, body) for n, body in enumerate(BODIES)]
    assert msgspec.json.decode(batch_body(members, "json-array")) == AS_JSON


def test_ndjson_has_one_line_for_each_body_whatever_its_layout():
    lines = batch_body([send(n, body) for n, body in enumerate(BODIES)], "ndjson").split(b"\n")
    assert lines.pop() == b""
    assert [msgspec.json.decode(line) for line in lines] == AS_JSON


def test_cloudevents_keep_their_own_attributes():
    own = [
        ("ce_id", b"order-1"),
        ("ce_type", b"order.made"),
        ("ce_source", b"/shop"),
        ("content-type", b"application/json"),
    ]
    events = msgspec.json.decode(batch_body([send(1, headers=own), send(2, b"\xff")], "cloudevents"))
    assert events[0] == {
        "specversion": "1.0", "id": "order-1", "source": "/shop", "type": "order.made", "data": {},
        "datacontenttype": "application/json", "penstockid": "id-1", "penstockposition": "0-0-1",
    }  # fmt: skip
    assert (events[1]["id"], events[1]["source"], events[1]["data_base64"]) == ("id-2", "/pipes/p/shop", "/w==")


@pytest.mark.parametrize(
    ("answer", "statuses"),
    [
        pytest.param({"items": [{"status": 200}, {"status": 400}, {"status": 503}]}, [200, 400, 503], id="in order"),
        pytest.param([{"status": 200}] * 3, [200] * 3, id="a bare list"),
        pytest.param({"items": [{"index": {"status": 201}}] * 3}, [201] * 3, id="as bulk APIs do it"),
        pytest.param({"items": [{"id": "b", "status": 409}]}, [200, 409, 200], id="by id, only who failed"),
        pytest.param({"items": [{"id": "x", "status": 409}]}, None, id="a stranger's id"),
        pytest.param({"items": [{"status": 200}]}, None, id="too few to know whose"),
        pytest.param({"items": [{"status": "200"}] * 3}, None, id="no number"),
        pytest.param({"items": [{"status": True}] * 3}, None, id="no status"),
        pytest.param({"items": [5, None, []]}, None, id="no entries"),
        pytest.param({"items": []}, None, id="an empty list"),
        pytest.param({"ok": True}, None, id="nothing of items"),
    ],
)
def test_response_may_report_the_status_of_each_member(answer: Any, statuses: list[int] | None):
    assert read_items(msgspec.json.encode(answer), IDS) == statuses


@pytest.mark.parametrize("body", [b"", b"fine", b"\xff", b"[" * 100_000])
def test_response_that_is_no_json_reports_no_member(body: bytes):
    assert read_items(body, IDS) is None
