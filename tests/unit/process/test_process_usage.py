"""Usage in a process lane, by pipe: messages, bytes as they arrived, and the time that the plan needed."""

from pathlib import Path

from dataplane.ledger.usage import PipeUsage
from dataplane.tables.records import PipeRecord
from tests.support.memory_lane import MemoryLane
from tests.support.process_lane import arrived, opened, plan

CAST = {"op": "cast", "path": "n", "to": "int"}


def noted(lane: MemoryLane) -> dict[str, PipeUsage]:
    lane.usage.hasten()
    usage = lane.usage.take_if_due()
    assert usage is not None
    return {one.pipe: one for one in usage.pipes}


def test_messages_and_bytes_are_counted_for_their_pipe_whatever_their_outcome(tmp_path: Path):
    lane = opened(tmp_path, plan(normalize=[CAST], destinations=("crm", "lake")))
    lane.table.apply(PipeRecord("q", 1, "t", "refunds", "c1", "active", [(1, 100)], {}, ""))
    lane.take(arrived(5, b'{"n":"1"}'), arrived(6, b'{"n":"one"}'), arrived(7, b"{}", pipe="q"))
    found = noted(lane)
    assert {pipe: (one.units, one.size_bytes) for pipe, one in found.items()} == {"p": (2, 20), "q": (1, 2)}


def test_pipe_with_more_work_has_the_greater_effort(tmp_path: Path):
    lane = opened(tmp_path, plan())
    lane.table.apply(PipeRecord("q", 1, "t", "refunds", "c1", "active", [(1, 100)], {}, ""))
    lane.take(*(arrived(number, b"{}") for number in range(200)), arrived(200, b"{}", pipe="q"))  # q has no plan here
    found = noted(lane)
    assert found["p"].effort > found["q"].effort > 0
