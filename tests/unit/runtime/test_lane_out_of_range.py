"""A lane whose committed offset the log does not have: that partition stops, says so, and the others go on."""

from typing import Any

import pytest
from confluent_kafka import KafkaError

from dataplane.runtime.crashes import Crashes
from dataplane.runtime.lane import Lane, LaneIdentity
from dataplane.runtime.slots import Slots
from dataplane.tables.optional_files import OptionalFiles
from tests.rig.memory_lane import MemoryMessage


class OutOfRange(MemoryMessage):
    """What the client returns in place of a record."""

    def error(self) -> Any:
        return KafkaError(KafkaError._AUTO_OFFSET_RESET, "no previously committed offset is available")


class Paused:
    """A consumer that is only paused."""

    def __init__(self) -> None:
        self.places: list[tuple[str, int]] = []

    def pause(self, places: list[Any]) -> None:
        self.places += [(place.topic, place.partition) for place in places]


@pytest.fixture
def lane(tmp_path: Any) -> Lane:
    """As much of a lane as reads messages."""
    lane = Lane.__new__(Lane)
    lane.identity = LaneIdentity("c1", "process", 0, 1, "here")
    lane.slots, lane.windows = Slots(["in"]), {}
    lane._consumer = Paused()
    lane._crashes = Crashes(tmp_path, OptionalFiles())
    lane._ours, lane._recall, lane._stopped = {0, 1}, None, {}
    return lane


def test_a_partition_whose_offset_is_out_of_range_stops_and_the_others_go_on(lane: Lane):
    good = [MemoryMessage(1, offset, b"{}", [], topic="in") for offset in (4, 5)]
    gone = OutOfRange(0, 7, b"", [], topic="in")
    assert lane._admit([good[0], gone, good[1]]) == good
    assert lane._consumer.places == [("in", 0)]
    assert "in/0 stopped" in lane._stopped[0]
    assert set(lane.windows) == {1}, "nothing of it can be committed"
