"""Pauses of partitions: at a full window, at its bytes, while everything is full; each resumes at half."""

from pathlib import Path
from typing import Any, cast

import pytest

from dataplane.runtime.lanes.partitions import AssignedPartitions
from dataplane.runtime.lanes.poison import PoisonTracker
from dataplane.runtime.lanes.slots import PartitionSlots
from dataplane.tables.optional_files import OptionalFiles
from tests.support.memory_lane import MemoryMessage

MOST = 10
MOST_BYTES = 10_000


class PausingConsumer:
    """Consumer that keeps which partitions are paused."""

    def __init__(self) -> None:
        self.paused: set[int] = set()

    def pause(self, places: list[Any]) -> None:
        self.paused |= {place.partition for place in places}

    def resume(self, places: list[Any]) -> None:
        self.paused -= {place.partition for place in places}


@pytest.fixture
def consumer() -> PausingConsumer:
    return PausingConsumer()


@pytest.fixture
def owned(consumer: PausingConsumer, tmp_path: Path) -> AssignedPartitions:
    """Two partitions with a limit of ten messages and ten thousand bytes."""
    crashes, slots = PoisonTracker(tmp_path, OptionalFiles()), PartitionSlots(["in"])
    made = AssignedPartitions("process-0", slots, cast(Any, consumer), crashes, pat=lambda: None, max_unsettled=MOST)
    made.bound(MOST, MOST_BYTES)
    made.assign([0, 1])
    return made


def admit(owned: AssignedPartitions, offsets: range, size_bytes: int = 1, partition: int = 0) -> None:
    messages: list[Any] = [MemoryMessage(partition, at, bytes(size_bytes), [], topic="in") for at in offsets]
    assert len(owned.admit(messages)) == len(offsets)


def test_full_window_pauses_only_its_partition_until_half_of_it_is_settled(
    owned: AssignedPartitions, consumer: PausingConsumer
):
    admit(owned, range(MOST))
    admit(owned, range(MOST - 1), partition=1)
    owned.hold_back(all_full=False)
    assert consumer.paused == {0}
    owned.windows[0].settle_all(range(4))
    owned.hold_back(all_full=False)
    assert consumer.paused == {0}, "six of ten are left"
    owned.windows[0].settle(4)
    owned.hold_back(all_full=False)
    assert consumer.paused == set()


def test_large_messages_pause_their_partition_until_half_of_their_bytes_are_settled(
    owned: AssignedPartitions, consumer: PausingConsumer
):
    admit(owned, range(4), size_bytes=MOST_BYTES // 4)
    owned.hold_back(all_full=False)
    assert consumer.paused == {0}
    owned.windows[0].settle(0)
    owned.hold_back(all_full=False)
    assert consumer.paused == {0}, "three quarters of the bytes are left"
    owned.windows[0].settle(1)
    owned.hold_back(all_full=False)
    assert consumer.paused == set()


def test_all_partitions_pause_while_everything_is_full(owned: AssignedPartitions, consumer: PausingConsumer):
    owned.hold_back(all_full=True)
    assert consumer.paused == {0, 1}
    owned.hold_back(all_full=False)
    assert consumer.paused == set()


def test_message_read_again_or_of_another_lane_is_not_admitted(owned: AssignedPartitions):
    admit(owned, range(3))
    again: list[Any] = [MemoryMessage(0, at, b"", [], topic="in") for at in range(4)]
    foreign: Any = MemoryMessage(2, 0, b"", [], topic="in")
    assert owned.admit([*again, foreign]) == [again[3]]
    assert set(owned.windows) == {0}
