"""A pipe of which a process lane lacks something: its messages wait for a moment, then are held, in order."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from dataplane.ledger.facts import Fact
from dataplane.ledger.meta import META_HEADER, encode_meta, read_meta
from dataplane.ledger.units import position_of
from dataplane.process import dependencies
from dataplane.process.lookups import Lookups
from dataplane.process.work import ProcessWork
from dataplane.tables.lookups import TableRecord, encode_table, table_key
from dataplane.tables.records import DEPENDENCY_MISSING, PipeRecord, PlanRecord
from dataplane.tables.signals import Signal, decode_signal
from tests.rig.memory_lane import MemoryLane, MemoryMessage, message
from tests.rig.process_lane import egress, opened, plan

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
    return lane.outbox.of(lane.cell.topics[purpose].name)


def signals(lane: MemoryLane) -> list[Signal]:
    return [decode_signal(one["value"]) for one in on_topic(lane, "signals")]


def held(lane: MemoryLane) -> list[bytes]:
    return [one["value"] for one in on_topic(lane, "held")]


def sent(lane: MemoryLane) -> list[bytes]:
    return [one["value"] for one in egress(lane)]


def back(lane: MemoryLane, number: int, offset: int, revision: int) -> MemoryMessage:
    """The number-th held record, as the retrier brings it back."""
    record = on_topic(lane, "held")[number]
    meta = msgspec.structs.replace(read_meta(record["headers"]), revision=revision)
    return MemoryMessage(0, offset, record["value"], [(META_HEADER, encode_meta(meta))], record["key"])


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages wait for nothing longer than until the next turn; what is missing is looked for at every turn."""
    monkeypatch.setattr(dependencies, "WAIT_S", 0.0)
    monkeypatch.setattr(dependencies, "CHECK_S", 0.0)


def small(lane: MemoryLane) -> MemoryLane:
    lane.settings = msgspec.structs.replace(lane.settings, max_unsettled=ROOM)
    return lane


def test_messages_wait_ten_seconds_for_what_is_missing_and_are_held_then(tmp_path: Path):
    lane = opened(tmp_path)
    lane.take(keyed(1), keyed(2, key=None))
    waiting = lane.work._waiting
    due = lane.work._dependencies.overdue
    assert (due(waiting, 100.0), due(waiting, 109.9), held(lane)) == (set(), set(), [])
    assert due(waiting, 110.0) == {"p"}
    lane.work.turn()
    assert held(lane) == [b"1", b"2"]
    lane.store()
    assert lane.unsettled() == 0
    filed = lane.filed()
    assert filed["normalize", Fact.HELD, "1"] == filed["ingest", "sent", "seen"] == 2


def test_half_a_window_of_waiting_messages_is_held_at_once_and_other_pipes_go_on(tmp_path: Path):
    lane = small(opened(tmp_path))
    lane.table.apply(OTHER)
    lane.table.apply(msgspec.structs.replace(plan(1), pipe="q"))
    lane.take(*(keyed(n) for n in range(ROOM // 2 - 1)))
    lane.work.turn()
    assert held(lane) == []
    lane.take(keyed(ROOM // 2 - 1), *(keyed(n, pipe="q") for n in range(ROOM // 2, ROOM)))
    lane.work.turn()
    lane.store()
    assert (len(held(lane)), len(sent(lane))) == (ROOM // 2, ROOM // 2)
    assert lane.unsettled() == 0
    assert lane.windows[0].prefix == ROOM


def test_one_waiting_message_at_the_head_of_half_a_window_is_held(tmp_path: Path):
    lane = small(opened(tmp_path))
    lane.table.apply(OTHER)
    lane.table.apply(msgspec.structs.replace(plan(1), pipe="q"))
    lane.take(keyed(0), *(keyed(n, pipe="q") for n in range(1, ROOM // 2)))
    lane.store()
    assert lane.windows[0].span == ROOM // 2
    lane.work.turn()
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
        (without_salt, "The secret of its hash steps cannot be opened."),
        (without_table, "The look-up table 'prices' has not been loaded yet."),
    ],
)
@pytest.mark.usefixtures("impatient")
def test_the_lane_reports_what_is_missing_until_it_comes(tmp_path: Path, make: Any, reason: str):
    lane, provide = make(tmp_path)
    lane.take(keyed(1))
    lane.work.turn()
    lane.work.turn()
    (signal,) = signals(lane)
    assert (signal.pipe, signal.destination, signal.breaker) == ("p", "", "open")
    assert (signal.suspended, signal.reason, signal.of_version) == (DEPENDENCY_MISSING, reason, 1)
    assert lane.held_pipes == 1
    provide(lane)
    lane.work.turn()
    assert [(one.breaker, one.suspended) for one in signals(lane)[1:]] == [("closed", "")]
    assert lane.held_pipes == 0


@pytest.mark.usefixtures("impatient")
def test_a_slow_lane_reports_what_is_missing_and_keeps_what_waits(tmp_path: Path):
    lane = MemoryLane("process-slow", tmp_path)
    lane.table.apply(PipeRecord("p", 1, "t", "orders", "c1", "active", [(1, 100)]))
    lane.work = ProcessWork(lane, Lookups(tmp_path / "rows"))  # type: ignore[arg-type]
    lane.take(keyed(1, position=position_of(1, 0, 7)), keyed(2, position=position_of(1, 0, 8)))
    lane.work.turn()
    (signal,) = signals(lane)
    assert (signal.pipe, signal.suspended) == ("p", DEPENDENCY_MISSING)
    assert (held(lane), lane.unsettled()) == ([], 2)
    lane.table.apply(plan(1))
    lane.work.turn()
    assert sent(lane) == [b"1", b"2"]
    lane.store()
    assert [one.breaker for one in signals(lane)] == ["open", "closed"]
    assert lane.unsettled() == 0


@pytest.mark.usefixtures("impatient")
def test_the_order_of_a_key_holds_across_hold_and_release(tmp_path: Path):
    lane = opened(tmp_path, ordered(1))
    lane.take(keyed(1), keyed(2, revision=2), keyed(3), keyed(4, revision=2))
    lane.work.turn()
    assert (sent(lane), held(lane)) == ([b"1"], []), "nothing is held before what passed is settled"
    lane.store()
    lane.work.turn()
    assert (sent(lane), held(lane)) == ([b"1"], [b"2", b"3", b"4"])
    lane.take(keyed(5))
    assert held(lane)[3:] == [b"5"], "what comes later is held behind them"
    lane.table.apply(PipeRecord("p", 2, "t", "orders", "c1", "active", [(2, 100)]))
    lane.table.apply(ordered(2))
    lane.work.turn()
    lane.take(keyed(6, revision=2))
    assert held(lane)[4:] == [b"6"], "those before it have not come back"
    lane.take(*(back(lane, n, 10 + n, revision=2) for n in range(5)), keyed(20, revision=2))
    assert sent(lane) == [b"1", b"2", b"3", b"4", b"5", b"6", b"20"]
    lane.store()
    assert lane.unsettled() == 0


@pytest.mark.usefixtures("impatient")
def test_a_new_owner_of_the_partition_keeps_the_order_too(tmp_path: Path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    lane = opened(tmp_path / "one")
    lane.take(keyed(1), keyed(2))
    lane.work.turn()
    lane.store()
    note = lane.note(0, 3)
    heir = opened(tmp_path / "two", ordered(1))
    heir.recall(0, note)
    heir.take(keyed(3))
    assert (sent(heir), held(heir)) == ([], [b"3"])
    heir.take(back(lane, 0, 4, 1), back(lane, 1, 5, 1), back(heir, 0, 6, 1), keyed(7))
    assert sent(heir) == [b"1", b"2", b"3", b"7"]


@pytest.mark.usefixtures("impatient")
def test_what_came_back_and_lacks_something_still_is_held_once_more(tmp_path: Path):
    lane = opened(tmp_path)
    lane.take(keyed(1), keyed(2))
    lane.work.turn()
    lane.take(back(lane, 0, 3, 1), back(lane, 1, 4, 1))
    lane.work.turn()
    assert held(lane) == [b"1", b"2", b"1", b"2"]
    metas = [read_meta(one["headers"]) for one in on_topic(lane, "held")]
    assert [meta.attempt for meta in metas] == [1, 1, 2, 2]
    lane.store()
    assert lane.unsettled() == 0


def test_a_lane_holds_a_pipe_that_is_paused_for_what_another_lane_lacks(tmp_path: Path):
    lane = opened(tmp_path, plan(1))
    lane.table.apply(PipeRecord("p", 2, "t", "orders", "c1", "paused", [(1, 100)], cause=DEPENDENCY_MISSING))
    lane.take(keyed(1))
    lane.work.turn()
    assert (held(lane), sent(lane), signals(lane)) == ([b"1"], [], [])


def test_a_lane_that_starts_reports_what_it_lacks_of_a_pipe_that_is_paused_for_it(tmp_path: Path):
    lane = opened(tmp_path)
    lane.table.apply(PipeRecord("p", 2, "t", "orders", "c1", "paused", [(1, 100)], cause=DEPENDENCY_MISSING))
    lane.work.turn()
    assert [(one.breaker, one.reason) for one in signals(lane)] == [("open", "Revision 1 has not been loaded yet.")]
