"""Executors that join are warmed with one task each, as many as are idle."""

from types import SimpleNamespace
from typing import Any

import pytest

from dataplane.jobs import idle_executors
from dataplane.jobs.idle_executors import IdleExecutors

DRIVER = "10.0.0.1:7079"


class Cluster:
    """Fake Spark context: `executors` are the addresses of executors, `tasks` the sizes of the jobs that ran."""

    def __init__(self, master: str = "spark://10.0.0.1:7077") -> None:
        self.master = master
        self.executors = list[str]()
        self.tasks = list[int]()
        manager = SimpleNamespace(blockManagerId=lambda: SimpleNamespace(hostPort=lambda: DRIVER))
        self._scala = SimpleNamespace(
            getExecutorMemoryStatus=lambda: SimpleNamespace(keySet=lambda: SimpleNamespace(mkString=self._joined)),
            env=lambda: SimpleNamespace(blockManager=lambda: manager),
        )
        self._jsc = SimpleNamespace(sc=lambda: self._scala)

    def _joined(self, separator: str) -> str:
        return separator.join([DRIVER, *self.executors])

    def setLocalProperty(self, name: str, value: str) -> None:  # noqa: N802 as Spark names it
        assert (name, value) == ("spark.scheduler.pool", "warm")

    def parallelize(self, items: Any, slices: int) -> Any:
        assert len(items) == slices
        return SimpleNamespace(foreach=lambda _: self.tasks.append(slices))


class AtOnce:
    """Thread that has ended as soon as it is started."""

    def __init__(self, target: Any, args: tuple[int], *, daemon: bool) -> None:
        assert daemon
        self.start = lambda: target(*args)

    def is_alive(self) -> bool:
        return False


@pytest.fixture(autouse=True)
def threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(idle_executors, "InheritableThread", AtOnce)


def test_each_executor_that_joins_idle_is_warmed_once():
    cluster: Any = Cluster()
    idle = IdleExecutors(cluster)
    idle.poll(0)
    assert cluster.tasks == [], "the driver is no executor"
    cluster.executors = ["10.0.0.2:1", "10.0.0.2:2", "10.0.0.3:1"]
    for _ in range(3):
        idle.poll(2)
    assert cluster.tasks == [1]
    cluster.executors[0] = "10.0.0.4:1"  # one is lost, and another one replaces it between two polls
    idle.poll(2)
    assert cluster.tasks == [1, 1]


def test_busy_executors_are_left_alone():
    cluster: Any = Cluster()
    cluster.executors = ["10.0.0.2:1", "10.0.0.2:2"]
    IdleExecutors(cluster).poll(2)
    assert cluster.tasks == [], "a task would wait for a slot, and Spark would start an executor for it"


def test_local_master_has_no_executors_to_warm():
    cluster: Any = Cluster("local[16,1000]")
    cluster.executors = ["10.0.0.2:1"]
    IdleExecutors(cluster).poll(0)
    assert cluster.tasks == []
