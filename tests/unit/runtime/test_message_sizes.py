"""Messages of every size around each limit, at every hop: no lane crashes, and every message ends."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pyroaring import BitMap64

from dataplane.causes import Cause
from dataplane.ledger.breakdown import Slice
from dataplane.ledger.deadletter import (
    ANSWER_BYTES,
    DETAIL_BYTES,
    NODE_BYTES,
    DeadLetterReason,
    dead_headers,
    dead_letter_reason,
    original_of,
)
from dataplane.ledger.meta import META_HEADER, Headers, MessageMeta, encode_meta
from dataplane.ledger.stopwatch import stamp
from dataplane.names import WIRE_VERSION, Purpose
from dataplane.process.dedup import JUDGED
from dataplane.record_limits import BODY_BYTES, CLIENT_MAX_BYTES, ENVELOPE_BYTES, HOP_BYTES, wire_bytes
from dataplane.retrier import redriver
from dataplane.retrier import work as retrier_module
from dataplane.retrier.redrive_job import RedriveJob
from dataplane.retrier.redriver import Redriver
from dataplane.retrier.release_pacer import DestinationKey
from dataplane.retrier.retry_messages import LEAVE_HEADER
from dataplane.retrier.work import RetrierWork
from dataplane.runtime.lanes.partitions import buffered_bytes
from dataplane.tables.records import PipeRecord
from dataplane.transmit.deliveries.delivery import Delivery
from dataplane.transmit.outcomes.outcomes import Outcomes
from tests.support.memory_lane import MemoryLane, MemoryMessage
from tests.support.memory_topics import MemorySignalReader, MemoryTopics
from tests.support.process_lane import opened as opened_process
from tests.support.process_lane import plan
from tests.support.transmitting import destination, opened, without_kafka

NEAR: Final = st.integers(-60, 60)
LONG: Final = 2**63 - 1
quick = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def widest(of: str = "crm") -> MessageMeta:
    """Return our header with every field at its largest."""
    times = dict.fromkeys(("event_time_us", "ingest_time_us", "first_us", "not_before_us", "asked_us"), LONG)
    numbers = dict.fromkeys(("child", "attempt", "tried", "life", "as_of", "share"), LONG)
    fields: dict[str, Any] = {"position": LONG, "off_time": True, "paced": True, "through": True, **times, **numbers}
    return MessageMeta(
        version=WIRE_VERSION, id="i" * 60, pipe="p", revision=1, source="s" * 40, bucket=2**31, destination=of, **fields
    )


def narrowest() -> MessageMeta:
    """Return the header of a message on egress with the fields that a hop writes at their smallest."""
    small = dict.fromkeys(("attempt", "not_before_us", "tried", "asked_us", "life", "as_of"), 0)
    began_us = 1  # so that the time that a hop stamps has many digits
    stopwatch = stamp(Slice.TRANSMIT_QUEUE, began_us, [])
    return msgspec.structs.replace(widest(), ingest_time_us=began_us, stopwatch=stopwatch, **small)


def headers_of(meta: MessageMeta, envelope: int, key: bytes | None = None) -> Headers:
    """Return headers that make an envelope of the given size together with the key."""
    headers: Headers = [(META_HEADER, encode_meta(meta)), ("content-type", b"application/json"), ("ce_x", b"")]
    headers[-1] = ("ce_x", b"x" * max(0, envelope - wire_bytes(None, key, headers)))
    return headers


def record(
    lane: MemoryLane, purpose: Purpose, body: int, headers: Headers, key: bytes | None = None, offset: int = 5
) -> MemoryMessage:
    value = b'{"a":"' + b"x" * (body - 8) + b'"}'
    return MemoryMessage(0, offset, value, headers, key, lane.cell.topics[purpose].name)


def sizes(lane: MemoryLane) -> list[int]:
    return [
        wire_bytes(one["value"], one.get("key"), one.get("headers") or [])
        for _, _, one in lane.producer.sent
        if one["headers"] is not None
    ]


def letter(lane: MemoryLane) -> dict[str, Any]:
    (found,) = lane.producer.of(lane.cell.topics["dead"].name)
    return found


# -- what ingest accepts fits everywhere -------------------------------------------------------------------------------

HOPS: Final[dict[str, Callable[[Outcomes, Delivery], None]]] = {
    "tried again": lambda ends, send: ends.schedule_retry(send, LONG, asked_us=LONG),
    "held": lambda ends, send: ends.hold(send),
    "to the slow lane": lambda ends, send: ends.divert(send),
    "dead": lambda ends, send: ends.dead_letter(
        send, "c" * NODE_BYTES, "\u4e2d" * DETAIL_BYTES, "\u4e2d" * ANSWER_BYTES
    ),
}


@pytest.fixture(autouse=True)
def _no_kafka(monkeypatch: pytest.MonkeyPatch) -> None:
    without_kafka(monkeypatch)


@contextmanager
def sent(var: Path, size: int, envelope: int, key: bytes | None = None) -> Iterator[tuple[MemoryLane, Delivery]]:
    """Open a transmit lane that has a record of the given size in flight."""
    lane, work, _ = opened(var, destination())
    try:
        lane.take(record(lane, "egress", size, headers_of(narrowest(), envelope, key), key))
        (send,) = work._ends.under_way.values()
        yield lane, send
    finally:
        work.close()


@pytest.mark.parametrize("hop", HOPS)
def test_largest_accepted_message_is_copied_whole_by_every_hop(tmp_path: Path, hop: str):
    with sent(tmp_path, BODY_BYTES, ENVELOPE_BYTES, b"k" * 300) as (lane, send):
        HOPS[hop](lane.work._ends, send)
        (_, _, stored) = lane.producer.sent[-1]
        assert stored["value"] == send.body
        assert stored["headers"][2] == send.headers[2]
        assert max(sizes(lane)) <= CLIENT_MAX_BYTES
        grown = max(sizes(lane)) - BODY_BYTES - ENVELOPE_BYTES
        assert grown < HOP_BYTES // 2, "each hop needs less than half of its headroom"


def test_largest_accepted_message_passes_process_dedup_and_the_hold_at_the_entrance(tmp_path: Path):
    lane = opened_process(tmp_path, plan(dedup={"paths": ["a"], "window_s": 60}))
    for offset, more in enumerate(([], [JUDGED]), 5):
        meta = widest("")
        meta.position = meta.child = 5 if more else 0
        lane.take(record(lane, "ingest", BODY_BYTES, [*headers_of(meta, ENVELOPE_BYTES), *more], offset=offset))
    lane.table.apply(PipeRecord("p", 2, "t", "orders", "c1", "paused", [(1, 100)], cause="dead-rate"))
    held = widest("")
    held.through = False  # a message with it runs although its pipe is held
    lane.take(record(lane, "ingest", BODY_BYTES, headers_of(held, ENVELOPE_BYTES), offset=7))
    names = [lane.cell.topics[purpose].name for purpose in ("dedup", "egress", "held")]
    assert [topic for topic, *_ in lane.producer.sent] == names
    assert max(sizes(lane)) <= CLIENT_MAX_BYTES


# -- and whatever an earlier release stored has an end -----------------------------------------------------------------


@quick
@example(more=60, envelope=ENVELOPE_BYTES, hop="tried again", keyed=False)  # at the limit: each hop would exceed it
@example(more=60, envelope=ENVELOPE_BYTES, hop="held", keyed=False)
@example(more=60, envelope=ENVELOPE_BYTES, hop="to the slow lane", keyed=False)
@given(more=NEAR, envelope=st.integers(1_000, ENVELOPE_BYTES), hop=st.sampled_from(sorted(HOPS)), keyed=st.booleans())
def test_transmit_lane_ends_every_message_whatever_its_size(
    tmp_path_factory: pytest.TempPathFactory, more: int, envelope: int, hop: str, keyed: bool
):
    key = b"crm\0k" if keyed else None
    size = min(CLIENT_MAX_BYTES - envelope, CLIENT_MAX_BYTES - envelope - 500 + more * 20)
    with sent(tmp_path_factory.mktemp("lane"), size, envelope, key) as (lane, send):
        assert wire_bytes(send.body, key, send.headers) <= CLIENT_MAX_BYTES, "the topic can store it"
        HOPS[hop](lane.work._ends, send)
        assert max(sizes(lane)) <= CLIENT_MAX_BYTES
        (topic, _, stored) = lane.producer.sent[-1]
        if topic == lane.cell.topics["dead"].name and not stored["value"]:
            assert original_of(stored["headers"]) == f"{lane.cell.topics['egress'].name}/0/5"
            assert dead_letter_reason(stored["headers"]).cause == (
                Cause.TOO_LARGE if hop != "dead" else "c" * NODE_BYTES
            )
        else:
            assert stored["value"] == send.body
        lane.store()
        assert lane.unsettled() == 0
        assert sum(lane.filed().values()) == 1


@quick
@given(near=st.sampled_from([BODY_BYTES, CLIENT_MAX_BYTES - ENVELOPE_BYTES]), more=NEAR, grown=st.integers(0, 120))
def test_process_lane_ends_every_message_whatever_its_size(
    tmp_path_factory: pytest.TempPathFactory, near: int, more: int, grown: int
):
    steps = [{"op": "set", "path": "note", "value": "x" * grown}] if grown else []
    lane = opened_process(tmp_path_factory.mktemp("lane"), plan(normalize=steps))
    headers = headers_of(widest(""), 2_000)
    body = b'{"a":"' + b"x" * (near + more - 8) + b'"}'
    lane.take(MemoryMessage(0, 5, body, headers, None, lane.cell.topics["ingest"].name))
    (topic, _, stored) = lane.producer.sent[-1]
    if topic == lane.cell.topics["egress"].name:
        assert len(stored["value"]) <= BODY_BYTES
    else:
        assert (stored["value"], original_of(stored["headers"])) in [
            (body, ""),
            (b"", f"{lane.cell.topics['ingest'].name}/0/5"),
        ]
        assert dead_letter_reason(stored["headers"]).cause == Cause.TOO_LARGE
    assert max(sizes(lane)) <= CLIENT_MAX_BYTES
    lane.store()
    assert lane.unsettled() == 0


def test_child_that_grew_too_large_before_its_failure_is_dead_lettered_by_reference(tmp_path: Path):
    steps = [
        {"op": "set", "path": "lines", "value": [1]},
        {"op": "explode", "path": "lines"},
        *({"op": "set", "path": f"f{n}", "value": "x" * 60_000} for n in range(CLIENT_MAX_BYTES // 60_000 + 1)),
        {"op": "cast", "path": "n", "to": "int"},
    ]
    lane = opened_process(tmp_path, plan(normalize=steps))
    lane.take(record(lane, "ingest", 8, headers_of(widest(""), 2_000)))
    assert original_of(letter(lane)["headers"]) or letter(lane)["value"]
    assert max(sizes(lane)) <= CLIENT_MAX_BYTES
    lane.store()
    assert lane.unsettled() == 0


def test_message_too_large_to_be_held_at_the_entrance_is_dead_lettered_by_reference(tmp_path: Path):
    lane = opened_process(tmp_path, plan())
    lane.table.apply(PipeRecord("p", 2, "t", "orders", "c1", "paused", [(1, 100)], cause="dead-rate"))
    meta = MessageMeta(WIRE_VERSION, "i", "p", 1, "s", 1, 1, 1)
    headers = headers_of(meta, 1_000)
    lane.take(record(lane, "ingest", CLIENT_MAX_BYTES - 1_000, headers), _second(lane, headers))
    assert original_of(letter(lane)["headers"]) == f"{lane.cell.topics['ingest'].name}/0/5"
    assert len(lane.producer.of(lane.cell.topics["held"].name)) == 1, "the other message is held"
    lane.store()
    assert lane.unsettled() == 0
    filed = lane.filed()
    assert (filed["normalize", "dead", Cause.TOO_LARGE], filed["normalize", "held", "1"]) == (1, 1)


def _second(lane: MemoryLane, headers: Headers) -> MemoryMessage:
    return MemoryMessage(0, 6, b"{}", headers, None, lane.cell.topics["ingest"].name)


@quick
@given(more=NEAR, tier=st.booleans(), due=st.booleans())
def test_retrier_lane_ends_every_message_whatever_its_size(
    tmp_path_factory: pytest.TempPathFactory, more: int, tier: bool, due: bool
):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(retrier_module, "SignalReader", MemorySignalReader)
        patch.setattr("dataplane.retrier.low_watermarks.place_reader", MemoryTopics().reader)
        lane = MemoryLane("retrier", tmp_path_factory.mktemp("lane"))
        lane.work = RetrierWork(lane)
    meta = widest()
    meta.not_before_us, meta.asked_us = 1 if due else 2**53, 0
    headers = headers_of(meta, 2_000)
    if tier:
        headers.append((LEAVE_HEADER, b"1"))
    body = CLIENT_MAX_BYTES - wire_bytes(None, None, headers) - max(0, more)
    lane.take(record(lane, "delay-10s" if tier else "retry-in", body, headers))
    lane.work.poll()
    assert max(sizes(lane)) <= CLIENT_MAX_BYTES
    lane.store()
    assert lane.unsettled() == 0
    assert sum(lane.filed().values()) == 1


@pytest.mark.parametrize("room", [0, 100])
def test_foreign_record_is_dead_lettered_whatever_its_size(tmp_path: Path, room: int):
    lane = opened_process(tmp_path, plan())
    body = b"x" * (CLIENT_MAX_BYTES - wire_bytes(None, None, [("a", b"b")]) - room)
    topic = lane.cell.topics["ingest"].name
    lane.take(MemoryMessage(0, 5, body, [("a", b"b")], None, topic))
    found = letter(lane)
    assert found["value"] == (body if room else b"")
    assert original_of(found["headers"]) == ("" if room else f"{topic}/0/5")
    assert max(sizes(lane)) <= CLIENT_MAX_BYTES


# -- a letter by reference is not brought back -------------------------------------------------------------------------


def test_redrive_skips_a_dead_letter_without_its_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with sent(tmp_path, CLIENT_MAX_BYTES - 2_000, 2_000) as (lane, send):
        lane.work._ends.dead_letter(send, "rejected", "returned 400", "400\n" + "x" * 2_000)
        found = letter(lane)
        assert original_of(found["headers"])
        name = lane.cell.topics["dead"].name
        topics = MemoryTopics()
        topics.add(MemoryMessage(0, 9, found["value"], found["headers"], None, name))
        monkeypatch.setattr(redriver, "place_reader", topics.reader)
        job = RedriveJob(DestinationKey("p", "crm"), "redrive", {(name, 0): BitMap64([9])}, {})
        before = len(lane.producer.sent)
        worker = Redriver(lane, job, 1_000.0)
        worker._allowance = 10.0
        worker.poll(worker._allowed_s + 1)
        assert len(lane.producer.sent) == before, "nothing is sent in its place"
        assert job.is_over
        assert job.skipped_below({(name, 0): 10}) == 1


def test_dead_letter_headers_are_cut_to_whole_characters():
    headers = dead_headers(
        widest(), [(META_HEADER, b"")], DeadLetterReason("n", "c", "\u4e2d" * DETAIL_BYTES, "\ud800" * 5)
    )
    death = dead_letter_reason(headers)
    assert death.detail == "\u4e2d" * (DETAIL_BYTES // 3)
    assert death.answer == "?" * 5


def test_buffered_bytes_of_a_message_include_its_headers():
    """Otherwise many attributes with small bodies would fill a lane's memory within its bound."""
    message = MemoryMessage(0, 5, b"{}", [("ce_a", b"x" * 1_000), ("ce_b", b"x" * 500)])
    assert buffered_bytes(message) == 1_502
    assert buffered_bytes(MemoryMessage(0, 5, b"{}", [])) == 2
