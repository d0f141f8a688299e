"""Timing in a process lane: lags of messages that left a node, stopwatches of those that left the lane."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from dataplane.causes import Cause
from dataplane.ledger.audit import LagSet
from dataplane.ledger.breakdown import Slice
from dataplane.ledger.meta import MessageMeta, read_meta
from dataplane.ledger.sketch import LagSketch
from dataplane.ledger.stopwatch import spent_until
from dataplane.names import Purpose
from dataplane.process import work
from dataplane.process.dedup import VERDICT_HEADER, read_question
from dataplane.runtime.clock import SteadyClock
from dataplane.tables.records import PipeRecord
from tests.support.memory_lane import MemoryLane, MemoryMessage
from tests.support.process_lane import arrived, egress, opened, plan

CAME = 1_790_000_000_000_000
CAST = {"op": "cast", "path": "n", "to": "int"}
LOWER = {"op": "set", "path": "n", "value": 1}


class Ticking:
    """Clock that advances by a tenth of a millisecond at each reading."""

    def __init__(self, first_us: int) -> None:
        self._ticks: Iterator[int] = count(first_us, 100)

    def now_us(self) -> int:
        return next(self._ticks)


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Set the time at which the next batch is read."""
    now_us = [CAME + 8_000]
    monkeypatch.setattr(work, "SteadyClock", lambda: Ticking(now_us[0]))
    return now_us


def sketches(lane: MemoryLane) -> dict[tuple[str, str], LagSketch]:
    taken: list[LagSet] = lane.lags.take()
    return {(one.node, one.way): LagSketch.decode(one.sketch) for one in taken}


def spent_by(record: dict[str, Any], arrived_us: int) -> dict[str, int]:
    meta: MessageMeta = read_meta(record["headers"])
    return {Slice(n).name: took for n, took in enumerate(spent_until(meta, arrived_us) or []) if took}


def stored(message: MemoryMessage, at_us: int) -> MemoryMessage:
    message.at_ms = at_us // 1_000
    return message


def test_lags_of_a_node_cover_the_messages_that_left_it(tmp_path: Path):
    lane = opened(tmp_path, plan(normalize=[CAST], transform={"crm": [{"op": "filter", "when": "body.n > 5"}]}))
    bodies = [b'{"n":"x"}', b'{"n":"3"}', b'{"n":"7"}', b'{"n":"8"}']
    lane.take(*(arrived(n, body) for n, body in enumerate(bodies)))
    lane.store()
    found = sketches(lane)
    counts = {key: sketch.count for key, sketch in found.items()}
    assert counts == {("normalize", way): 3 for way in ("in", "out", "own")} | {
        ("transform:crm", way): 2 for way in ("in", "out", "own")
    }
    for node in ("normalize", "transform:crm"):
        lag_in, lag_out, own = (found[node, way].max_us for way in ("in", "out", "own"))
        assert lag_out - lag_in == own > 0


def test_message_departs_with_the_last_of_its_delivery_reports(tmp_path: Path):
    lane = opened(tmp_path, plan())
    lane.take(arrived(1))
    assert {node for node, _ in sketches(lane)} == {"normalize"}, "its record is not stored yet"
    lane.store()
    assert {node for node, _ in sketches(lane)} == {"transform:crm"}


def test_message_leaves_with_the_time_of_every_stage(tmp_path: Path):
    routes = {"rules": [{"when": "true", "to": ["crm", "erp"]}]}
    lane = opened(
        tmp_path, plan(destinations=("crm", "erp"), normalize=[CAST], routes=routes, transform={"erp": [LOWER]})
    )
    lane.take(stored(arrived(1, b'{"n":"1"}'), CAME + 2_000))
    crm, erp = (spent_by(record, CAME + 20_000) for record in egress(lane))
    assert {name: took for name, took in crm.items() if name not in ("TRANSFORM", "TRANSMIT_QUEUE")} == {
        "INGEST": 2_500,
        "PROCESS_QUEUE": 8_000 - 2_500 + 100,
        "NORMALIZE": 100,
        "ROUTE": 100,
    }
    assert 0 < crm["TRANSFORM"] < erp["TRANSFORM"], "it waited for the other destination"
    assert sum(crm.values()) == sum(erp.values()) == 20_000


def test_messages_of_one_run_share_a_stamp(tmp_path: Path):
    lane = opened(tmp_path, plan())
    lane.take(arrived(1), arrived(2), arrived(3))
    assert len({read_meta(record["headers"]).stopwatch for record in egress(lane)}) == 1


def test_time_at_dedup_is_a_slice_and_the_message_keeps_its_stopwatch(tmp_path: Path, clock: list[int]):
    lane = opened(tmp_path, plan(dedup={"paths": ["id"], "window_s": 60}))
    lane.take(stored(arrived(1, b'{"id":1}'), CAME + 2_000))
    (asked,) = lane.producer.of(lane.cell.topics["dedup"].name)
    back = [*asked["headers"][:-1], (VERDICT_HEADER, b"")]
    clock[0] = CAME + 900_000
    lane.take(MemoryMessage(0, 9, asked["value"], back, read_question(asked["headers"]).key))
    (record,) = egress(lane)
    spent = spent_by(record, CAME + 1_000_000)
    assert (spent["INGEST"], spent["PROCESS_QUEUE"]) == (2_500, 8_000 - 2_500 + 100)
    assert 890_000 < spent["DEDUP"] < 893_000
    assert sum(spent.values()) == 1_000_000


def test_time_held_before_the_steps_is_a_slice(tmp_path: Path, clock: list[int]):
    lane = opened(tmp_path, plan())
    held = PipeRecord("p", 2, "t", "orders", "c1", "paused", [(1, 100)], cause=Cause.DEAD_RATE)
    lane.table.apply(held)
    lane.take(stored(arrived(1), CAME + 2_000))
    purpose: Purpose = "held"
    (record,) = lane.producer.of(lane.cell.topics[purpose].name)
    lane.table.apply(PipeRecord("p", 3, "t", "orders", "c1", "active", [(1, 100)]))
    clock[0] = CAME + 60_000_000
    lane.take(MemoryMessage(0, 9, record["value"], record["headers"], None))
    (sent,) = egress(lane)
    spent = spent_by(sent, CAME + 60_001_000)
    assert 59_990_000 < spent["HELD"] < 60_000_000
    assert sum(spent.values()) == 60_001_000


def test_children_of_one_message_have_the_same_times(tmp_path: Path):
    lane = opened(tmp_path, plan(normalize=[{"op": "explode", "path": "lines"}]))
    lane.take(stored(arrived(1, b'{"lines":[{"a":1},{"a":2}]}'), CAME + 2_000))
    first, second = (spent_by(record, CAME + 9_000) for record in egress(lane))
    assert first == second
    assert first["INGEST"] == 2_500


@pytest.mark.parametrize("stopwatch", [b"", b"junk"])
def test_returned_message_without_a_stopwatch_continues_without_one(tmp_path: Path, stopwatch: bytes):
    """An earlier release held the message, so the slices of its time are not known."""
    lane = opened(tmp_path, plan())
    lane.take(arrived(9, position=5, stopwatch=stopwatch))
    assert read_meta(egress(lane)[0]["headers"]).stopwatch == b""


def test_steady_clock_never_runs_backwards_when_the_wall_clock_is_set_back(monkeypatch: pytest.MonkeyPatch):
    steady = SteadyClock()
    before = steady.now_us()
    monkeypatch.setattr("time.time_ns", lambda: 0)
    assert steady.now_us() >= before
    assert SteadyClock().now_us() < before, "a new clock follows the wall clock"
