"""A copy made by a replay is another unit than its original: sent, counted and ended separately, and never in order."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyroaring import BitMap64

from dataplane.ledger.audit import decode_attempts
from dataplane.ledger.meta import read_meta
from dataplane.ledger.units import position_of
from dataplane.names import Purpose
from dataplane.record_limits import CLIENT_MAX_BYTES
from dataplane.spec import BatchSettings, RetryPolicy, TopicDestination
from dataplane.tables.records import DestinationRecord
from dataplane.tables.replays import ReplayProgress, encode_replay_progress, replay_progress_key
from dataplane.tables.signals import SIGNAL_VERSION, DestinationSignal, encode_signal
from dataplane.transmit.destinations.targets import STORM
from dataplane.transmit.work import TransmitWork
from tests.support.memory_lane import MemoryLane, MemoryMessage, message
from tests.support.transmitting import (
    KEY,
    Clock,
    MemoryProducer,
    MemorySender,
    destination,
    opened,
    signals_of,
    without_kafka,
)

REPLAY = "replay_1"
REPLAYED_AT = 29_840_000  # bucket of the replay


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    without_kafka(monkeypatch)
    return Clock(monkeypatch)


def copy(offset: int, position: int, *, replay: str = REPLAY, **more: Any) -> MemoryMessage:
    """Return a copy of the message at `position`, as the cell's driver produces it to egress."""
    fields = {"id": f"id-0-{position}", "position": position, "bucket": REPLAYED_AT, "replay": replay, **more}
    return message(offset, **fields)


def accounts(lane: MemoryLane) -> dict[tuple[str, int], dict[tuple[str, str], list[int]]]:
    """Return the positions of each (fact, detail) by account and bucket, and remove them from the recorded facts."""
    found: dict[tuple[str, int], dict[tuple[str, str], list[int]]] = {}
    for one in lane.facts.take():
        found.setdefault((one.pipe, one.bucket), {})[one.fact, one.detail] = list(BitMap64.deserialize(one.positions))
    return found


ORIGINALS, COPIES = ("p", 29_833_333), (REPLAY, REPLAYED_AT)


def produced(lane: MemoryLane, purpose: Purpose) -> list[dict[str, Any]]:
    return lane.producer.of(lane.cell.topics[purpose].name)


def ended(lane: MemoryLane, sender: MemorySender, status: int) -> None:
    lane.work.poll()
    sender.answer(status)
    lane.work.poll()
    lane.store()


def header(sender: MemorySender, number: int) -> str:
    """Return the value of a request's header penstock-replay, "" without one."""
    lines = [line for line in sender.requests[number][1] if line.startswith("penstock-replay:")]
    return lines[0].partition(": ")[2] if lines else ""


def test_original_and_copies_of_one_unit_are_each_sent_and_counted_in_their_own_account(tmp_path: Path):
    lane, work, sender = opened(tmp_path, destination())
    lane.take(message(1), copy(2, 1), copy(3, 1, replay="replay_2"))
    work.poll()
    assert len(sender.begun) == 3
    sender.answer(204)
    work.poll()
    assert accounts(lane) == {
        ORIGINALS: {("delivered", ""): [1]},
        COPIES: {("delivered", ""): [1]},
        ("replay_2", REPLAYED_AT): {("delivered", ""): [1]},
    }
    assert lane.unsettled() == 0
    work.close()


def test_timing_of_a_copy_is_in_the_account_of_its_replay(tmp_path: Path):
    lane, work, sender = opened(tmp_path, destination())
    lane.take(message(1), copy(2, 1))
    ended(lane, sender, 204)
    assert {(one.pipe, one.bucket) for one in lane.lags.take()} == {ORIGINALS, COPIES}
    work.close()


@pytest.mark.parametrize("first", ["original", "copy"])
def test_unit_settled_before_a_kill_does_not_settle_its_copy_or_original(tmp_path: Path, first: str):
    both = (message(1), copy(2, 1)) if first == "original" else (copy(1, 1), message(2, position=1, id="id-0-1"))
    lane, killed, sender = opened(tmp_path, destination())
    lane.take(both[0])
    ended(lane, sender, 204)
    killed.close()

    lane, work, sender = opened(tmp_path, destination())
    lane.take(*both)
    work.poll()
    assert [bool(token.meta.replay) for token in sender.begun] == [first == "original"]
    sender.answer(204)
    work.poll()
    assert set(accounts(lane)) == {ORIGINALS, COPIES}
    work.close()


def test_copy_that_is_read_twice_is_sent_once(tmp_path: Path):
    lane, work, sender = opened(tmp_path, destination())
    lane.take(copy(2, 1), copy(3, 1))
    work.poll()
    assert len(sender.begun) == 1
    sender.answer(204)
    work.poll()
    lane.take(copy(4, 1))
    work.poll()
    assert (len(sender.requests), lane.unsettled()) == (1, 0)
    work.close()


# -- failures ----------------------------------------------------------------------------------------------------------


def test_dead_copy_is_counted_for_its_replay_and_not_written_to_the_dead_topic(tmp_path: Path):
    lane, work, sender = opened(tmp_path, destination())
    lane.take(message(1), copy(2, 1))
    ended(lane, sender, 400)
    (letter,) = produced(lane, "dead")
    assert not read_meta(letter["headers"]).replay
    assert accounts(lane) == {ORIGINALS: {("dead", "rejected"): [1]}, COPIES: {("dead", "rejected"): [1]}}
    assert lane.unsettled() == 0
    work.close()


def test_copy_is_settled_as_dead_without_waiting_for_a_record(tmp_path: Path):
    lane, work, sender = opened(tmp_path, destination())
    lane.take(copy(2, 1))
    work.poll()
    sender.answer(400)
    work.poll()
    assert (lane.unsettled(), lane.producer.waiting) == (0, [])
    work.close()


def test_refused_copies_do_not_suspend_the_destination_of_the_originals(tmp_path: Path):
    lane, work, sender = opened(tmp_path, destination())
    for position in range(1, STORM + 6):
        lane.take(copy(position, position))
        ended(lane, sender, 422)
    lane.take(message(100))
    ended(lane, sender, 204)
    assert produced(lane, "held") == []
    found = accounts(lane)
    assert found["p", 29_833_333] == {("delivered", ""): [100]}
    assert len(found[COPIES]["dead", "rejected"]) == STORM + 5
    work.close()


def poison(lane: MemoryLane, _sender: MemorySender, clock: Clock) -> None:
    lane.condemn(copy(2, 1))


def expired(lane: MemoryLane, sender: MemorySender, clock: Clock) -> None:
    lane.take(copy(2, 1, attempt=3, first_us=clock.wall_us - 90_000_000_000))
    ended(lane, sender, 503)


def too_large(lane: MemoryLane, sender: MemorySender, clock: Clock) -> None:
    lane.take(copy(2, 1, body=b"x" * CLIENT_MAX_BYTES, attempt=1))
    ended(lane, sender, 503)


@pytest.mark.parametrize(("fail", "cause"), [(poison, "crashes-lane"), (expired, "expired"), (too_large, "too-large")])
def test_copy_that_ends_in_any_other_way_writes_no_dead_letter(
    tmp_path: Path, clock: Clock, fail: Callable[..., None], cause: str
):
    lane, work, sender = opened(tmp_path, destination())
    fail(lane, sender, clock)
    assert produced(lane, "dead") == []
    assert accounts(lane) == {COPIES: {("dead", cause): [1]}}
    assert lane.unsettled() == 0
    work.close()


@pytest.mark.parametrize("state", ["paused", "suspended"])
def test_copy_for_a_held_destination_is_cancelled_and_not_written_to_held(tmp_path: Path, state: Any):
    lane, work, _sender = opened(tmp_path, destination(state=state))
    lane.take(message(1), copy(2, 1))
    work.poll()
    lane.store()
    (record,) = produced(lane, "held")
    assert not read_meta(record["headers"]).replay
    assert accounts(lane) == {ORIGINALS: {("held", "1"): [1]}, COPIES: {("cancelled", "held"): [1]}}
    assert lane.unsettled() == 0
    work.close()


def test_copy_of_a_probe_is_not_sent_to_its_held_destination(tmp_path: Path):
    record = destination(state="suspended", version=2)
    record = DestinationRecord(record.pipe, record.name, 2, "suspended", record.to, record.secrets, probe="id-0-1")
    lane, work, sender = opened(tmp_path, record)
    lane.take(copy(2, 1), message(1 + 2))
    work.poll()
    assert sender.begun == []
    assert accounts(lane) == {COPIES: {("cancelled", "held"): [1]}}
    work.close()


def test_copy_that_meets_a_gone_destination_is_cancelled_after_its_attempt(tmp_path: Path):
    lane, work, sender = opened(tmp_path, destination())
    lane.take(copy(2, 1))
    ended(lane, sender, 410)
    assert produced(lane, "held") == []
    assert accounts(lane) == {COPIES: {("cancelled", "held"): [1]}}
    work.report()
    (attempts,) = produced(lane, "attempts")
    assert [one.outcome for one in decode_attempts(attempts["value"]).attempts] == ["cancelled"]
    work.close()


def test_copy_that_is_retried_stays_a_copy(tmp_path: Path):
    lane, work, sender = opened(tmp_path, destination())
    lane.take(copy(2, 1))
    ended(lane, sender, 503)
    (record,) = produced(lane, "retry-in")
    meta = read_meta(record["headers"])
    assert (meta.replay, meta.attempt, meta.bucket) == (REPLAY, 1, REPLAYED_AT)
    assert accounts(lane) == {COPIES: {("parked", "1"): [1]}}
    work.close()


@pytest.mark.parametrize("off_time", [False, True])
def test_attempt_of_a_copy_is_one_of_its_pipe_in_the_minute_of_the_event(tmp_path: Path, off_time: bool):
    """The page of a message finds the account of its original by this minute once the event is no longer stored."""
    lane, work, sender = opened(tmp_path, destination())
    event_us, ingest_us = 1_790_000_000_000_000, 1_790_000_120_000_000
    lane.take(copy(2, 1, event_time_us=event_us, ingest_time_us=ingest_us, off_time=off_time))
    ended(lane, sender, 400)
    work.report()
    (one,) = decode_attempts(produced(lane, "attempts")[0]["value"]).attempts
    assert (one.pipe, one.position, one.bucket) == ("p", 1, (ingest_us if off_time else event_us) // 60_000_000)
    work.close()


# -- order -------------------------------------------------------------------------------------------------------------


def ordered(tmp_path: Path, clock: Clock, kind: Any = "transmit", **fields: Any) -> Any:
    """Return a lane of an ordered destination that knows which keys are blocked."""
    lane, work, sender = opened(tmp_path, destination(ordered=True, **fields), kind=kind)
    lane.take(message(0, key=b"other"))
    work.poll()
    clock.advance(2)
    work.poll()
    ended(lane, sender, 204)
    lane.facts.take()
    lane.producer.sent.clear()
    return lane, work, sender


def begun(sender: MemorySender) -> list[tuple[int, str]]:
    return sorted((token.meta.position, token.meta.replay) for token in sender.begun)


@pytest.mark.parametrize("kind", ["transmit", "transmit-retry"])
def test_copy_neither_waits_behind_messages_of_its_key_nor_blocks_them(tmp_path: Path, clock: Clock, kind: Any):
    lane, work, sender = ordered(tmp_path, clock, kind)
    of_key: dict[str, Any] = {"key": b"a", "attempt": 1}
    lane.take(copy(1, 7, **of_key), message(2, **of_key), message(3, **of_key), copy(4, 8, **of_key))
    work.poll()
    assert begun(sender) == [(2, ""), (7, REPLAY), (8, REPLAY)]
    work.close()


def test_failed_copy_of_an_ordered_destination_blocks_no_key_and_waits_in_the_retrier(tmp_path: Path, clock: Clock):
    lane, work, sender = ordered(tmp_path, clock)
    place = position_of(1, 3, 9)
    lane.take(copy(1, place, key=b"a"))
    ended(lane, sender, 503)
    assert (produced(lane, "blocked"), produced(lane, "retry-out")) == ([], [])
    (record,) = produced(lane, "retry-in")
    assert (record["key"], record["partition"]) == (b"a", 3), "of its event: all copies of a key need not share one"
    lane.take(message(2, key=b"a"))
    work.poll()
    assert begun(sender) == [(2, "")]
    work.close()


def test_failed_copy_leaves_the_retry_lane_of_an_ordered_destination(tmp_path: Path, clock: Clock):
    lane, work, sender = ordered(tmp_path, clock, "transmit-retry")
    lane.take(copy(1, 7, key=b"a", attempt=1))
    ended(lane, sender, 503)
    assert [read_meta(record["headers"]).replay for record in produced(lane, "retry-in")] == [REPLAY]
    assert lane.unsettled() == 0
    work.close()


def test_dead_copy_holds_no_key(tmp_path: Path, clock: Clock):
    lane, work, sender = ordered(tmp_path, clock, after_dead="hold")
    lane.take(copy(1, 7, key=b"a"))
    ended(lane, sender, 400)
    assert lane.producer.sent == []
    lane.take(message(2, key=b"a"))
    work.poll()
    assert begun(sender) == [(2, "")]
    work.close()


def test_copy_is_sent_while_its_key_is_held(tmp_path: Path, clock: Clock):
    lane, work, sender = ordered(tmp_path, clock, after_dead="hold")
    lane.take(message(1, key=b"a"))
    ended(lane, sender, 400)
    lane.take(copy(2, 7, key=b"a"), message(3, key=b"a"))
    work.poll()
    assert begun(sender) == [(7, REPLAY)]
    work.close()


def test_copies_that_wait_too_long_leave_a_shared_retry_lane_and_ordered_messages_stay(tmp_path: Path, clock: Clock):
    lane, work, sender = ordered(tmp_path, clock, "transmit-retry", concurrency=1)
    lane.table.apply(destination("lake"))
    lane.take(
        message(1, key=b"a", attempt=1), message(2, key=b"b", attempt=1), copy(3, 7, key=b"c"),
        message(4, destination="lake"),
    )  # fmt: skip
    work.poll()
    clock.advance(11)
    work.poll()
    assert [read_meta(record["headers"]).position for record in produced(lane, "retry-in")] == [7]
    assert begun(sender) == [(1, ""), (4, "")]
    sender.answer_all_of("crm", 204)
    work.poll()
    work.poll()
    assert begun(sender) == [(2, ""), (4, "")], "it has waited at its place"
    work.close()


# -- requests ----------------------------------------------------------------------------------------------------------


def test_request_of_a_copy_names_its_replay_and_that_of_an_original_does_not(tmp_path: Path):
    lane, work, sender = opened(tmp_path, destination())
    lane.take(message(1), copy(2, 1))
    work.poll()
    assert [header(sender, number) for number in (0, 1)] == ["", REPLAY]
    ids = [next(line for line in request[1] if line.startswith("webhook-id")) for request in sender.requests]
    assert ids == ["webhook-id: id-0-1"] * 2
    work.close()


def test_record_of_a_copy_on_a_topic_names_its_replay(tmp_path: Path):
    lane = MemoryLane("transmit", tmp_path, KEY)
    lane.table.apply(DestinationRecord("p", "crm", 1, "active", TopicDestination(), []))
    work = lane.work = TransmitWork(lane)
    producer = work._writer._producer = MemoryProducer()
    lane.take(message(1), copy(2, 1))
    work.poll()
    names = [dict(record.headers).get("penstock-replay") for record in producer.sent]
    assert names == [None, REPLAY.encode()]
    work.close()


def test_batch_has_the_copies_of_one_replay_or_originals_and_names_the_replay(tmp_path: Path, clock: Clock):
    batch = BatchSettings(max_events=3, max_wait_ms=1_000)
    lane, work, sender = opened(tmp_path, destination(batch=batch, retry=RetryPolicy(local_tries=1)))
    mixed = [one for n in (1, 2, 3, 4) for one in (message(10 * n, position=n), copy(10 * n + 1, n))]
    lane.take(*mixed, copy(50, 1, replay="replay_2"))
    work.poll()
    members = [[(send.meta.position, send.meta.replay) for send in one.members] for one in sender.begun]
    assert members == [[(1, ""), (2, ""), (3, "")], [(1, REPLAY), (2, REPLAY), (3, REPLAY)]]
    clock.advance(1.1)
    work.poll()
    members = [[(send.meta.position, send.meta.replay) for send in one.members] for one in sender.begun[2:]]
    assert members == [[(4, "")], [(4, REPLAY)], [(1, "replay_2")]]
    assert [header(sender, number) for number in range(5)] == ["", REPLAY, "", REPLAY, "replay_2"]
    sender.answer(204)
    work.poll()
    found = accounts(lane)
    assert found[ORIGINALS] == found[COPIES] == {("delivered", ""): [1, 2, 3, 4]}
    work.close()


def test_lanes_take_no_record_of_a_replay_for_a_signal(tmp_path: Path, clock: Clock):
    _lane, work, _sender = opened(tmp_path, destination())
    signal = DestinationSignal(SIGNAL_VERSION, "c1", "transmit-1", "p", "crm", clock.wall_us, suspended="gone")
    progress = ReplayProgress(1, REPLAY, clock.wall_us, {}, {})
    key = replay_progress_key(REPLAY).encode()
    signals_of(work).put_raw(key, encode_signal(signal))
    signals_of(work).put_raw(key, encode_replay_progress(progress))
    work.poll()
    assert not work._targets.find("p", "crm").suspended
    work.close()
