"""Executors that join are warmed with one task each, as many as are idle."""

from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JError

from dataplane.jobs import idle_executors
from dataplane.jobs.idle_executors import EVERY_S, IdleExecutors

DRIVER = "10.0.0.1:7079"


class Cluster:
    """Fake Spark context: `executors` are the addresses of executors, `tasks` the sizes of the jobs that ran."""

    def __init__(self, master: str = "spark://10.0.0.1:7077") -> None:
        self.master = master
        self.executors = list[str]()
        self.tasks = list[int]()
        self.looked_up = 0
        self.error: Exception | None = None
        manager = SimpleNamespace(blockManagerId=lambda: SimpleNamespace(hostPort=lambda: DRIVER))
        self._scala = SimpleNamespace(
            getExecutorMemoryStatus=self._status, env=lambda: SimpleNamespace(blockManager=lambda: manager)
        )
        self._jsc = SimpleNamespace(sc=lambda: self._scala)

    def _status(self) -> Any:
        self.looked_up += 1
        if self.error is not None:
            raise self.error
        return SimpleNamespace(keySet=lambda: SimpleNamespace(mkString=lambda by: by.join([DRIVER, *self.executors])))

    def setLocalProperty(self, name: str, value: str) -> None:  # noqa: N802 as Spark names it
        assert (name, value) == ("spark.scheduler.pool", "warm")

    def parallelize(self, items: Any, slices: int) -> Any:
        assert len(items) == slices
        return SimpleNamespace(foreach=lambda _: self.tasks.append(slices))


class Turns:
    """Polls `idle` after each interval. Its threads end at once, unless `is_stuck`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, cluster: Any) -> None:
        self.now_s, self.is_stuck = 0.0, False
        monkeypatch.setattr(idle_executors, "InheritableThread", self._thread)
        monkeypatch.setattr(idle_executors, "time", SimpleNamespace(monotonic=lambda: self.now_s))
        self._idle = IdleExecutors(cluster)

    def poll(self, busy: int) -> None:
        self.now_s += EVERY_S
        self._idle.poll(busy)

    def _thread(self, target: Any, args: tuple[int], *, daemon: bool) -> Any:
        assert daemon
        return SimpleNamespace(start=lambda: target(*args), is_alive=lambda: self.is_stuck)


@pytest.fixture
def cluster() -> Any:
    return Cluster()


@pytest.fixture
def turns(monkeypatch: pytest.MonkeyPatch, cluster: Any) -> Turns:
    return Turns(monkeypatch, cluster)


def test_each_executor_that_joins_idle_is_warmed_once(cluster: Any, turns: Turns):
    turns.poll(0)
    assert cluster.tasks == [], "the driver is no executor"
    cluster.executors = ["10.0.0.2:1", "10.0.0.2:2", "10.0.0.3:1"]
    for _ in range(3):
        turns.poll(2)
    assert cluster.tasks == [1]
    cluster.executors[0] = "10.0.0.4:1"  # one is lost, and another one replaces it between two polls
    turns.poll(2)
    assert cluster.tasks == [1, 1]
    lost = cluster.executors.pop()
    turns.poll(2)
    cluster.executors.append(lost)  # another one has its address
    turns.poll(2)
    assert cluster.tasks == [1, 1, 1]


def test_busy_executors_are_left_alone(cluster: Any, turns: Turns):
    cluster.executors = ["10.0.0.2:1", "10.0.0.2:2"]
    turns.poll(2)
    assert cluster.tasks == [], "a task would wait for a slot, and Spark would start an executor for it"


def test_there_is_one_look_up_at_a_time_and_in_an_interval(cluster: Any, turns: Turns):
    turns.poll(0)
    turns._idle.poll(0)
    assert cluster.looked_up == 1
    turns.is_stuck = True
    turns.poll(0)
    assert cluster.looked_up == 1
    turns.is_stuck = False
    turns.poll(0)
    assert cluster.looked_up == 2


@pytest.mark.parametrize("error", [Py4JError("the context is stopped"), ConnectionRefusedError()])
def test_failed_look_up_does_not_end_the_driver_and_is_repeated(cluster: Any, turns: Turns, error: Exception):
    cluster.executors, cluster.error = ["10.0.0.2:1"], error
    turns.poll(0)
    cluster.error = None
    turns.poll(0)
    assert cluster.tasks == [1]


def test_local_master_has_no_executors_to_warm(monkeypatch: pytest.MonkeyPatch):
    cluster: Any = Cluster("local[16,1000]")
    cluster.executors = ["10.0.0.2:1"]
    Turns(monkeypatch, cluster).poll(0)
    assert cluster.looked_up == 0
