"""Bulk execution: process lanes pass the events on unchanged, and the bulk query's work runs them."""

from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import msgspec
import pytest

from dataplane.ledger.facts import BULK, Fact
from dataplane.ledger.meta import read_meta
from dataplane.ledger.units import position_of
from dataplane.names import ENTRANCE
from dataplane.plan import compile_plan
from dataplane.process import dependencies
from dataplane.process.work import ProcessWork
from dataplane.runtime.lookups import Lookups
from dataplane.spec import SpecError, parse_pipe_spec
from dataplane.tables.records import PipeRecord, PlanRecord
from tests.support.memory_lane import MemoryLane
from tests.support.process_lane import arrived, dead, egress, opened, plan

STEPS = [{"op": "set", "path": "seen", "value": True}]


def bulk_lane(var: Path, *plans: PlanRecord) -> MemoryLane:
    """Return a lane whose work is that of the bulk query."""
    lane = opened(var, *plans, kind="process-slow")
    lane.work = ProcessWork(lane, Lookups(Path(mkdtemp(dir=var))), is_bulk=True)
    return lane


def test_lane_passes_events_of_a_bulk_revision_on_unchanged(tmp_path: Path):
    lane = opened(tmp_path, plan(execution="bulk", normalize=STEPS))
    lane.take(arrived(1, b'{"n":1}', key=b"p\0a"), arrived(2, b'{"n":2}', key=b"p\0b", partition=2))
    assert egress(lane) == []
    sent = lane.producer.of(lane.cell.topics["bulk"].name)
    assert [(one["value"], one["key"], one["partition"]) for one in sent] == [
        (b'{"n":1}', b"p\0a", 0),
        (b'{"n":2}', b"p\0b", 2),
    ]
    assert lane.unsettled() == 2, "an event was settled before the bulk topic has it"
    lane.store()
    assert lane.unsettled() == 0
    facts = {(fact.node, fact.fact, fact.detail) for fact in lane.facts.sets()}
    assert (ENTRANCE, Fact.SENT, BULK) in facts
    assert all(node != "process" for node, _, _ in facts), "the steps did not run here"


def test_lane_runs_the_events_of_other_revisions_itself(tmp_path: Path):
    lane = opened(tmp_path, plan(1, execution="bulk"), plan(2))
    lane.take(arrived(1, revision=1), arrived(2, revision=2))
    assert len(lane.producer.of(lane.cell.topics["bulk"].name)) == 1
    assert [read_meta(record["headers"]).revision for record in egress(lane)] == [2]


def test_bulk_event_counts_for_no_detour(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """An import would otherwise be run by the slow lane, and not by the query."""
    lane, came = opened(tmp_path, plan(1, execution="bulk"), plan(2)), list[str]()
    detours = lane.work._detours
    assert detours is not None
    monkeypatch.setattr(detours, "came", lambda flow, _now_s: came.append(flow.key[0]))
    lane.take(arrived(1, revision=1))
    assert came == []
    lane.take(arrived(2, revision=2))
    assert came == ["p"]


def test_event_waits_while_the_cell_has_no_bulk_topic(tmp_path: Path):
    lane = opened(tmp_path)
    topics = {purpose: topic for purpose, topic in lane.cell.topics.items() if purpose != "bulk"}
    lane.cell = msgspec.structs.replace(lane.cell, topics=topics)
    lane.work = ProcessWork(lane, Lookups(Path(mkdtemp(dir=tmp_path))))
    lane.table.apply(plan(execution="bulk"))
    lane.take(arrived(1))
    lane.store()
    assert egress(lane) == []
    assert lane.unsettled() == 1


def test_bulk_work_runs_the_steps_and_keeps_the_position(tmp_path: Path):
    lane = bulk_lane(tmp_path, plan(execution="bulk", normalize=STEPS))
    position = position_of(1, 3, 77)
    lane.take(arrived(5, b'{"n":1}', key=b"p\0a", position=position))
    (record,) = egress(lane)
    assert record["value"] == b'{"n":1,"seen":true}'
    assert read_meta(record["headers"]).position == position
    lane.store()
    assert lane.unsettled() == 0
    assert not lane.producer.of(lane.cell.topics["bulk"].name)


def test_bulk_work_dead_letters_an_event_that_fails(tmp_path: Path):
    lane = bulk_lane(tmp_path, plan(execution="bulk", normalize=STEPS))
    lane.take(arrived(5, b"no json", position=position_of(1, 0, 7)))
    assert len(dead(lane)) == 1


def test_bulk_work_holds_events_whose_plan_is_missing_for_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Without this, one pipe would stop the batches of all pipes of its cell."""
    monkeypatch.setattr(dependencies, "WAIT_S", 0.0)
    lane = bulk_lane(tmp_path)
    known = plan(execution="bulk")
    lane.table.apply(PipeRecord("other", 1, "t", "other", "c1", "active", [(1, 100)]))
    lane.table.apply(PlanRecord("other", 1, known.spec))
    lane.take(arrived(5, position=position_of(1, 0, 7)), arrived(6, position=position_of(1, 0, 8), pipe="other"))
    lane.work.poll()
    lane.store()
    assert lane.unsettled() == 0
    assert [read_meta(one["headers"]).pipe for one in lane.producer.of(lane.cell.topics["held"].name)] == ["p"]
    assert [read_meta(one["headers"]).pipe for one in egress(lane)] == ["other"]


@pytest.mark.parametrize(
    "destination",
    [{"type": "http", "url": "http://crm.example/", "ordered": True}, {"type": "topic", "compacted": True}],
)
def test_bulk_execution_is_refused_for_a_destination_that_keeps_the_order_of_each_key(destination: dict[str, Any]):
    spec = {"sources": {"shop": {"key": "id"}}, "destinations": {"crm": destination}, "execution": "bulk"}
    with pytest.raises(SpecError, match="keeps the order") as caught:
        parse_pipe_spec(spec)
    assert caught.value.path == "$.execution"


def test_bulk_execution_is_possible_for_a_topic_that_keeps_all_records():
    spec = {"sources": {"shop": {"key": "id"}}, "destinations": {"feed": {"type": "topic"}}, "execution": "bulk"}
    assert compile_plan(parse_pipe_spec(spec)).is_bulk
