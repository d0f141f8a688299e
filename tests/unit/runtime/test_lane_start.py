"""A lane starts with the current control topic, not with the snapshot of its host."""

from typing import Any, cast

from dataplane.names import INPUTS_OF, cell_topic
from dataplane.runtime.lanes.context import LaneIdentity
from dataplane.runtime.lanes.lane import Lane, should_drain
from dataplane.tables.control import ControlTable
from dataplane.tables.records import CellRecord, TopicRecord

TOPICS = {purpose: TopicRecord(cell_topic("c1", purpose, 1), 1, 1, "") for purpose in INPUTS_OF["process"]}


class Reader:
    """Reader with a snapshot older than the lane; `catch_up` reads the rest of the topic."""

    def __init__(self) -> None:
        self.table = ControlTable()
        self.table.apply(CellRecord("c1", 1, 1, {"process": 0}, TOPICS))

    def refresh(self) -> int:
        return 0

    def catch_up(self, timeout_s: float) -> bool:
        assert timeout_s > 0
        self.table.apply(CellRecord("c1", 2, 1, {"process": 1}, TOPICS))
        return True


def test_lane_that_starts_from_an_older_snapshot_does_not_drain_immediately():
    lane, reader = Lane.__new__(Lane), Reader()
    lane.identity = LaneIdentity("c1", "process", 0, 1, "here")
    lane.table, lane._reader = reader.table, cast(Any, reader)
    assert should_drain(lane.table, lane.identity), "the snapshot alone would drain it"
    lane._await_cell()
    assert not should_drain(lane.table, lane.identity)
