"""Clients of a worker: kept from task to task while their state is certain, and closed when nobody uses them."""

from typing import Any

import msgspec
import pytest

from dataplane.jobs.replay_task import run_here
from dataplane.jobs.replay_worker import ReplayWorker
from dataplane.replay import copies
from dataplane.runtime.settings import DataPlaneSettings, settings_from
from tests.support.memory_kafka import MemoryKafkaProducer
from tests.support.patience import Patience
from tests.support.process_lane import plan
from tests.support.replaying import LogReader, ReplayWorld, replay, task_of

EVENTS = 6


class Opened:
    """Clients that a worker has opened on a world, and how many consumers it has closed."""

    def __init__(self, world: ReplayWorld) -> None:
        self.world = world
        self.consumers = self.producers = self.closed = 0
        self.stores = True

    def consumer(self, _kafka: str) -> LogReader:
        opened, reader = self, self.world.reader()
        self.consumers += 1

        def close() -> None:
            opened.closed += 1

        reader.close = close  # type: ignore[method-assign]
        return reader

    def producer(self, _kafka: str) -> Any:
        self.producers += 1
        return self.world.producer() if self.stores else Silent(self.world.kafka)


class Silent(MemoryKafkaProducer):
    """Producer whose records are not reported."""

    def poll(self, _timeout: float) -> int:
        return 0

    def purge(self) -> None:
        """Keep the records: their fate stays unknown."""


@pytest.fixture
def opened() -> Opened:
    world = ReplayWorld()
    for number in range(EVENTS):
        world.ingest(number)
    return Opened(world)


@pytest.fixture
def settings(tmp_path: Any) -> DataPlaneSettings:
    return settings_from({"PENSTOCK_VAR": str(tmp_path), "PENSTOCK_KAFKA": "nowhere"})


def worker_of(opened: Opened, idle_s: float = 60.0) -> ReplayWorker:
    return ReplayWorker(opened.consumer, opened.producer, idle_s)


def test_tasks_of_a_worker_share_its_clients_and_its_plan(opened: Opened, settings: DataPlaneSettings):
    worker, spec = worker_of(opened), plan(2).spec
    for first in range(EVENTS):
        task = task_of(replay(), spec, first + 1, first=first)
        assert run_here(task, settings, worker).units == {"crm": 1}
        compiled = worker.plan(task)
        assert worker.plan(task) is compiled
    assert (opened.consumers, opened.producers, opened.closed) == (1, 1, 0)
    assert len(opened.world.copies()) == EVENTS
    other = task_of(replay(revision=3), plan(3, normalize=[{"op": "remove", "path": "a"}]).spec, 1)
    assert worker.plan(other) is not compiled


def test_rehearsal_opens_no_producer(opened: Opened, settings: DataPlaneSettings):
    run_here(task_of(replay(rehearsal=True), plan(2).spec, EVENTS), settings, worker_of(opened))
    assert (opened.consumers, opened.producers) == (1, 0)


def test_producer_whose_records_are_not_stored_is_not_lent_again(
    opened: Opened, settings: DataPlaneSettings, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(copies, "STORED_S", 0.05)
    worker, task = worker_of(opened), task_of(replay(), plan(2).spec, EVENTS)
    opened.stores = False
    assert "no copy was stored" in run_here(task, settings, worker).error
    opened.stores = True
    assert run_here(task, settings, worker).units == {"crm": EVENTS}
    assert (opened.consumers, opened.producers, opened.closed) == (2, 2, 1)


def test_clients_are_replaced_after_an_exception(opened: Opened, settings: DataPlaneSettings):
    worker, task = worker_of(opened), task_of(replay(), plan(2).spec, EVENTS)
    with pytest.raises(AttributeError):
        run_here(msgspec.structs.replace(task, range=None), settings, worker)
    run_here(task, settings, worker)
    assert (opened.consumers, opened.closed) == (2, 1)


def test_idle_clients_are_closed_and_opened_for_the_next_task(opened: Opened, settings: DataPlaneSettings):
    worker, task = worker_of(opened, idle_s=0.01), task_of(replay(), plan(2).spec, EVENTS)
    run_here(task, settings, worker)
    patience = Patience(20)
    while not opened.closed and not patience.is_over:
        pass
    assert opened.closed == 1
    run_here(task, settings, worker)
    assert (opened.consumers, opened.producers) == (2, 2)


def test_records_fetched_for_an_earlier_task_are_ignored(opened: Opened, settings: DataPlaneSettings):
    """A consumer may return them after it was assigned another partition; an offset past the range must not end it."""
    world = opened.world
    for number in range(20, 40):
        world.ingest(number, partition=2)
    stale = world.kafka.logs["penstock.c1.ingest.g1", 2][-1]
    reader = world.reader()
    consume, first = reader.consume, [stale]
    reader.consume = lambda *args: [first.pop()] if first else consume(*args)  # type: ignore[method-assign]
    worker = ReplayWorker(lambda _: reader, opened.producer)
    result = run_here(task_of(replay(), plan(2).spec, EVENTS), settings, worker)
    assert (result.asked, result.read) == (EVENTS, EVENTS)
