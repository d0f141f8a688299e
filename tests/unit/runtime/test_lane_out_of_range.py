"""An out-of-range committed offset stops its partition with a report, and the other partitions continue."""

from types import SimpleNamespace
from typing import Any, cast

import pytest
from confluent_kafka import KafkaError

from dataplane.runtime.lanes.lane import Lane, LaneIdentity
from dataplane.runtime.lanes.poison import PoisonTracker
from dataplane.runtime.lanes.slots import PartitionSlots
from dataplane.tables.optional_files import OptionalFiles
from tests.support.memory_lane import MemoryMessage


class OutOfRange(MemoryMessage):
    """Error message that the client returns in place of a record."""

    def error(self) -> Any:
        return KafkaError(KafkaError._AUTO_OFFSET_RESET, "no previously committed offset is available")


class Paused:
    """Consumer of which only `pause` is used."""

    def __init__(self) -> None:
        self.places: list[tuple[str, int]] = []

    def pause(self, places: list[Any]) -> None:
        self.places += [(place.topic, place.partition) for place in places]


@pytest.fixture
def lane(tmp_path: Any) -> Lane:
    """Return the parts of a lane that read messages."""
    lane = Lane.__new__(Lane)
    lane.identity = LaneIdentity("c1", "process", 0, 1, "here")
    lane.slots, lane.windows = PartitionSlots(["in"]), {}
    lane._consumer = Paused()
    lane._crashes = PoisonTracker(tmp_path, OptionalFiles())
    lane._ours, lane._recall, lane._stopped = {0, 1}, None, {}
    lane._checkpointer, lane.producer = cast(Any, SimpleNamespace(late_s=0.0)), cast(Any, SimpleNamespace(trouble=""))
    lane.files = OptionalFiles()
    return lane


def test_out_of_range_offset_stops_its_partition_and_the_others_continue(lane: Lane):
    good = [MemoryMessage(1, offset, b"{}", [], topic="in") for offset in (4, 5)]
    gone = OutOfRange(0, 7, b"", [], topic="in")
    assert lane._admit([good[0], gone, good[1]]) == good
    assert lane._consumer.places == [("in", 0)]
    assert lane._trouble.startswith("in/0 stopped"), "its heartbeat reports it"
    assert set(lane.windows) == {1}, "no offset of it can be committed"
