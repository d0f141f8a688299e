"""A retrier lane in memory, with a clock that tests move."""

from pathlib import Path

import pytest

from dataplane.retrier import low_watermarks
from dataplane.retrier import work as module
from dataplane.retrier.work import RetrierWork
from tests.support.memory_lane import MemoryLane
from tests.support.memory_topics import MemorySignalReader, MemoryTopics
from tests.support.retrying import NOW
from tests.support.transmitting import Clock


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock(monkeypatch)
    made.wall_us = NOW
    return made


@pytest.fixture
def lane(tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> MemoryLane:
    monkeypatch.setattr(module, "SignalReader", MemorySignalReader)
    monkeypatch.setattr(low_watermarks, "place_reader", MemoryTopics().reader)
    made = MemoryLane("retrier", tmp_path)
    made.work = RetrierWork(made)
    return made
