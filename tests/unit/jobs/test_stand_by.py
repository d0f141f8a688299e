"""Driver of a standby application at a real FIFO, without Spark: a byte activates it, and no keeper ends it."""

import os
import threading
import time
from collections.abc import Iterator
from io import FileIO
from pathlib import Path
from typing import Final
from unittest.mock import MagicMock

import pytest

from dataplane.jobs.cell import Driver

AT_MOST_S: Final = 5.0


@pytest.fixture
def fifo(tmp_path: Path) -> Path:
    path = tmp_path / "fifo"
    os.mkfifo(path)
    return path


@pytest.fixture
def keeper(fifo: Path) -> Iterator[FileIO]:
    """The FIFO as a keeper has it open."""
    with FileIO(os.open(fifo, os.O_RDWR | os.O_NONBLOCK), "r+b") as file:
        yield file


class Waiting:
    """A driver without Spark and Kafka that waits in a thread."""

    def __init__(self, fifo: Path) -> None:
        driver = Driver.__new__(Driver)
        driver._spark, driver._reader, driver._producer = MagicMock(), MagicMock(), MagicMock()
        driver._parent = os.getppid()
        self.results: list[bool] = []
        self._thread = threading.Thread(target=lambda: self.results.append(driver.stand_by(fifo)), daemon=True)
        self._thread.start()

    def result(self) -> bool:
        """Return what `stand_by` returned."""
        self._thread.join(AT_MOST_S)
        assert self.results, "the driver still waits"
        return self.results[0]


def wait_ready(fifo: Path) -> None:
    deadline_s = time.monotonic() + AT_MOST_S
    while fifo.exists():
        assert time.monotonic() < deadline_s, "the name of the FIFO is not removed"
        time.sleep(0.01)


def test_byte_activates_the_driver(fifo: Path, keeper: FileIO):
    waiting = Waiting(fifo)
    wait_ready(fifo)
    time.sleep(0.1)
    assert waiting.results == []
    keeper.write(b"!")
    keeper.close()
    assert waiting.result() is True


def test_end_of_the_keeper_ends_the_driver(fifo: Path, keeper: FileIO):
    waiting = Waiting(fifo)
    wait_ready(fifo)
    keeper.close()
    assert waiting.result() is False


def test_driver_that_finds_no_keeper_ends_and_is_never_ready(fifo: Path):
    assert Waiting(fifo).result() is False
    assert fifo.exists()


def test_driver_that_finds_no_fifo_ends(tmp_path: Path):
    assert Waiting(tmp_path / "none").result() is False
