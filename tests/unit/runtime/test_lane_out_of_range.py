"""An out-of-range committed offset stops its partition with a report, and the other partitions continue."""

from pathlib import Path
from typing import Any, cast

from confluent_kafka import KafkaError

from dataplane.runtime.lanes.partitions import AssignedPartitions
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


def test_out_of_range_offset_stops_its_partition_and_the_others_continue(tmp_path: Path):
    consumer, crashes = Paused(), PoisonTracker(tmp_path, OptionalFiles())
    slots = PartitionSlots(["in"])
    owned = AssignedPartitions("process-0", slots, cast(Any, consumer), crashes, pat=lambda: None, max_unsettled=100)
    owned.assign([0, 1])
    good: list[Any] = [MemoryMessage(1, offset, b"{}", [], topic="in") for offset in (4, 5)]
    gone: Any = OutOfRange(0, 7, b"", [], topic="in")
    assert owned.admit([good[0], gone, good[1]]) == good
    assert consumer.places == [("in", 0)]
    assert owned.trouble.startswith("in/0 stopped"), "the lane's heartbeat reports it"
    assert set(owned.windows) == {1}, "no offset of it can be committed"
