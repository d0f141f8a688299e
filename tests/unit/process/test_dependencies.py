"""A pipe with a missing dependency in a process lane: its messages wait briefly, then are held in order."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from dataplane.causes import Cause
from dataplane.ledger.facts import Fact
from dataplane.ledger.meta import META_HEADER, encode_meta, read_meta
from dataplane.ledger.units import position_of
from dataplane.process import dependencies
from dataplane.tables.lookups import TableRecord, encode_table, table_key
from dataplane.tables.records import PipeRecord, PlanRecord
from dataplane.tables.signals import DestinationSignal, decode_signal
from tests.support.memory_lane import MemoryLane, MemoryMessage, message
from tests.support.process_lane import egress, opened, plan

KEY = b"p\0alice"
ROOM = 10
OTHER = PipeRecord("q", 1, "t2", "others", "c1", "active", [(1, 100)])


def keyed(offset: int, revision: int = 1, key: bytes | None = KEY, **more: Any) -> MemoryMessage:
    return message(offset, b"%d" % offset, key=key, revision=revision, **{"destination": "", "position": 0, **more})


def ordered(revision: int, **fields: Any) -> PlanRecord:
    record = plan(revision, **fields)
    destinations = {name: msgspec.structs.replace(to, ordered=True) for name, to in record.spec.destinations.items()}
    return msgspec.structs.replace(record, spec=msgspec.structs.replace(record.spec, destinations=destinations))


def on_topic(lane: MemoryLane, purpose: Any) -> list[dict[str, Any]]:
    return lane.producer.of(lane.cell.topics[purpose].name)


def signals(lane: MemoryLane) -> list[DestinationSignal]:
    return [decode_signal(one["value"]) for one in on_topic(lane, "signals")]


def held(lane: MemoryLane) -> list[bytes]:
    return [one["value"] for one in on_topic(lane, "held")]


def sent(lane: MemoryLane) -> list[bytes]:
    return [one["value"] for one in egress(lane)]


def back(lane: MemoryLane, number: int, offset: int, revision: int) -> MemoryMessage:
    """Return a held record, chosen by number, as the retrier releases it."""
    record = on_topic(lane, "held")[number]
    meta = msgspec.structs.replace(read_meta(record["headers"]), revision=revision)
    return MemoryMessage(0, offset, record["value"], [(META_HEADER, encode_meta(meta))], record["key"])


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let messages wait only until the next poll, and check for missing dependencies at every poll."""
    monkeypatch.setattr(dependencies, "WAIT_S", 0.0)
    monkeypatch.setattr(dependencies, "CHECK_S", 0.0)


def small(lane: MemoryLane) -> MemoryLane:
    lane.settings = msgspec.structs.replace(lane.settings, max_unsettled=ROOM)
    return lane


def test_messages_wait_ten_seconds_for_a_missing_dependency_and_are_then_held(tmp_path: Path):
    lane = opened(tmp_path)
    lane.take(keyed(1), keyed(2, key=None))
    waiting = lane.work._waiting
    due = lane.work._dependencies.overdue
    assert (due(waiting, 100.0), due(waiting, 109.9), held(lane)) == (set(), set(), [])
    assert due(waiting, 110.0) == {"p"}
    lane.work.poll()
    assert held(lane) == [b"1", b"2"]
    lane.store()
    assert lane.unsettled() == 0
    filed = lane.filed()
    assert filed["normalize", Fact.HELD, "1"] == filed["ingest", "sent", "seen"] == 2


def test_waiting_messages_of_half_a_window_are_held_at_once_and_other_pipes_continue(tmp_path: Path):
    lane = small(opened(tmp_path))
    lane.table.apply(OTHER)
    lane.table.apply(msgspec.structs.replace(plan(1), pipe="q"))
    lane.take(*(keyed(n) for n in range(ROOM // 2 - 1)))
    lane.work.poll()
    assert held(lane) == []
    lane.take(keyed(ROOM // 2 - 1), *(keyed(n, pipe="q") for n in range(ROOM // 2, ROOM)))
    lane.work.poll()
    lane.store()
    assert (len(held(lane)), len(sent(lane))) == (ROOM // 2, ROOM // 2)
    assert lane.unsettled() == 0
    assert lane.windows[0].prefix == ROOM


def test_single_waiting_message_at_the_head_of_half_a_window_is_held(tmp_path: Path):
    lane = small(opened(tmp_path))
    lane.table.apply(OTHER)
    lane.table.apply(msgspec.structs.replace(plan(1), pipe="q"))
    lane.take(keyed(0), *(keyed(n, pipe="q") for n in range(1, ROOM // 2)))
    lane.store()
    assert lane.windows[0].span == ROOM // 2
    lane.work.poll()
    lane.store()
    assert (held(lane), lane.unsettled()) == ([b"0"], 0)


def without_plan(folder: Path) -> tuple[MemoryLane, Any]:
    return opened(folder), lambda lane: lane.table.apply(plan(1))


def without_salt(folder: Path) -> tuple[MemoryLane, Any]:
    lane = opened(folder, plan(1, normalize=[{"op": "mask", "path": "e", "how": "hash"}]))

    def open_it(lane: MemoryLane) -> None:
        lane.work._runner._plans.salt = lambda _pipe: b"salt"

    return lane, open_it


def without_table(folder: Path) -> tuple[MemoryLane, Any]:
    lane = opened(folder, plan(1, enrich=[{"table": "prices", "key": "body.sku", "into": "price"}]))

    def load(lane: MemoryLane) -> None:
        table = TableRecord("tab_1", 1, "t", "prices", "live")
        lane.work._lookups.store.apply([(table_key("tab_1"), encode_table(table))], 1)

    return lane, load


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (without_plan, "Revision 1 has not been loaded yet."),
        (without_salt, "The secret of its hash steps cannot be decrypted."),
        (without_table, "The look-up table 'prices' has not been loaded yet."),
    ],
)
@pytest.mark.usefixtures("impatient")
def test_lane_reports_a_missing_dependency_until_it_is_loaded(tmp_path: Path, make: Any, reason: str):
    lane, provide = make(tmp_path)
    lane.take(keyed(1))
    lane.work.poll()
    lane.work.poll()
    (signal,) = signals(lane)
    assert (signal.pipe, signal.destination, signal.breaker) == ("p", "", "open")
    assert (signal.suspended, signal.reason, signal.of_version) == (Cause.DEPENDENCY_MISSING, reason, 1)
    assert lane.held_pipes == 1
    provide(lane)
    lane.work.poll()
    assert [(one.breaker, one.suspended) for one in signals(lane)[1:]] == [("closed", "")]
    assert lane.held_pipes == 0


@pytest.mark.usefixtures("impatient")
def test_slow_lane_reports_a_missing_dependency_and_keeps_waiting_messages(tmp_path: Path):
    lane = opened(tmp_path, kind="process-slow")
    lane.take(keyed(1, position=position_of(1, 0, 7)), keyed(2, position=position_of(1, 0, 8)))
    lane.work.poll()
    (signal,) = signals(lane)
    assert (signal.pipe, signal.suspended) == ("p", Cause.DEPENDENCY_MISSING)
    assert (held(lane), lane.unsettled()) == ([], 2)
    lane.table.apply(plan(1))
    lane.work.poll()
    assert sent(lane) == [b"1", b"2"]
    lane.store()
    assert [one.breaker for one in signals(lane)] == ["open", "closed"]
    assert lane.unsettled() == 0


@pytest.mark.usefixtures("impatient")
def test_order_of_a_key_is_kept_across_hold_and_release(tmp_path: Path):
    lane = opened(tmp_path, ordered(1))
    lane.take(keyed(1), keyed(2, revision=2), keyed(3), keyed(4, revision=2))
    lane.work.poll()
    assert (sent(lane), held(lane)) == ([b"1"], []), "no message is held before earlier ones are settled"
    lane.store()
    lane.work.poll()
    assert (sent(lane), held(lane)) == ([b"1"], [b"2", b"3", b"4"])
    lane.take(keyed(5))
    assert held(lane)[3:] == [b"5"], "later messages are held behind them"
    lane.table.apply(PipeRecord("p", 2, "t", "orders", "c1", "active", [(2, 100)]))
    lane.table.apply(ordered(2))
    lane.work.poll()
    lane.take(keyed(6, revision=2))
    assert held(lane)[4:] == [b"6"], "the earlier ones are not released yet"
    lane.take(*(back(lane, n, 10 + n, revision=2) for n in range(5)), keyed(20, revision=2))
    assert sent(lane) == [b"1", b"2", b"3", b"4", b"5", b"6", b"20"]
    lane.store()
    assert lane.unsettled() == 0


@pytest.mark.usefixtures("impatient")
def test_new_owner_of_the_partition_keeps_the_order_too(tmp_path: Path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    lane = opened(tmp_path / "one")
    lane.take(keyed(1), keyed(2))
    lane.work.poll()
    lane.store()
    note = lane.note(0, 3)
    heir = opened(tmp_path / "two", ordered(1))
    heir.recall(0, note)
    heir.take(keyed(3))
    assert (sent(heir), held(heir)) == ([], [b"3"])
    heir.take(back(lane, 0, 4, 1), back(lane, 1, 5, 1), back(heir, 0, 6, 1), keyed(7))
    assert sent(heir) == [b"1", b"2", b"3", b"7"]


@pytest.mark.usefixtures("impatient")
def test_released_message_that_still_lacks_a_dependency_is_held_again(tmp_path: Path):
    lane = opened(tmp_path)
    lane.take(keyed(1), keyed(2))
    lane.work.poll()
    lane.take(back(lane, 0, 3, 1), back(lane, 1, 4, 1))
    lane.work.poll()
    assert held(lane) == [b"1", b"2", b"1", b"2"]
    metas = [read_meta(one["headers"]) for one in on_topic(lane, "held")]
    assert [meta.attempt for meta in metas] == [1, 1, 2, 2]
    lane.store()
    assert lane.unsettled() == 0


def test_lane_holds_a_pipe_paused_for_a_dependency_that_another_lane_lacks(tmp_path: Path):
    lane = opened(tmp_path, plan(1))
    lane.table.apply(PipeRecord("p", 2, "t", "orders", "c1", "paused", [(1, 100)], cause=Cause.DEPENDENCY_MISSING))
    lane.take(keyed(1))
    lane.work.poll()
    assert (held(lane), sent(lane), signals(lane)) == ([b"1"], [], [])


def test_starting_lane_reports_its_missing_dependency_of_a_pipe_paused_for_it(tmp_path: Path):
    lane = opened(tmp_path)
    lane.table.apply(PipeRecord("p", 2, "t", "orders", "c1", "paused", [(1, 100)], cause=Cause.DEPENDENCY_MISSING))
    lane.work.poll()
    assert [(one.breaker, one.reason) for one in signals(lane)] == [("open", "Revision 1 has not been loaded yet.")]
