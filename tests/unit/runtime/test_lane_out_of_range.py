"""An out-of-range committed offset stops its partition with a report, and the other partitions continue."""

from pathlib import Path
from typing import Any, cast

import pytest

from dataplane.ledger.heartbeat import decode_heartbeat
from dataplane.names import HEARTBEAT_TOPIC
from dataplane.runtime.lanes.partitions import AssignedPartitions
from dataplane.runtime.lanes.poison import PoisonTracker
from dataplane.runtime.lanes.slots import PartitionSlots
from dataplane.runtime.telemetry.heartbeat import HeartbeatSender
from dataplane.tables.optional_files import OptionalFiles
from tests.support.failing_lanes import ProcessWorld, in_memory
from tests.support.memory_lane import MemoryMessage
from tests.support.memory_topics import OutOfRange


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
    assert owned.trouble.startswith("in/0 stopped")
    assert set(owned.windows) == {1}, "no offset of it can be committed"


def test_lane_with_an_out_of_range_offset_reports_it_and_does_all_other_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(HeartbeatSender, "due", lambda _pulse: True)  # at every pass of the loop
    world = ProcessWorld(tmp_path)
    ingest = world.name("ingest")
    world.kafka.partitions[ingest] = 2
    world.kafka.out_of_range.add((ingest, 1))
    with in_memory(world):
        assert world.run_lane() == "drained"
    world.check_done()
    assert not world.broken
    assert (ingest, 1) not in world.kafka.committed, "nothing is committed for it"
    last = decode_heartbeat(world.kafka.logs[HEARTBEAT_TOPIC, 0][-1].value())
    assert last.detail.startswith(f"{ingest}/1 stopped: ")
