"""A lane begins with what the control topic says now, not with what the host's snapshot said."""

from typing import Any, cast

from dataplane.names import INPUTS_OF, cell_topic
from dataplane.runtime.lane import Lane, LaneIdentity, should_drain
from dataplane.tables.control import ControlTable
from dataplane.tables.records import CellRecord, TopicRecord

TOPICS = {purpose: TopicRecord(cell_topic("c1", purpose, 1), 1, 1, "") for purpose in INPUTS_OF["process"]}


class Reader:
    """Has loaded a snapshot from before the lane was asked for; the rest of the topic comes in a moment."""

    def __init__(self) -> None:
        self.table = ControlTable()
        self.table.apply(CellRecord("c1", 1, 1, {"process": 0}, TOPICS))

    def refresh(self) -> int:
        return 0

    def catch_up(self, timeout_s: float) -> bool:
        assert timeout_s > 0
        self.table.apply(CellRecord("c1", 2, 1, {"process": 1}, TOPICS))
        return True


def test_a_lane_that_starts_from_an_older_snapshot_does_not_drain_at_once():
    lane = Lane.__new__(Lane)
    reader = Reader()
    lane.identity, lane.table, lane._reader = (
        LaneIdentity("c1", "process", 0, 1, "here"),
        reader.table,
        cast(Any, reader),
    )
    assert should_drain(lane.table, lane.identity), "by the snapshot alone"
    lane._await_cell()
    assert not should_drain(lane.table, lane.identity)
