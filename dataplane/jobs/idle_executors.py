"""Idle executors of a Spark cluster: the driver starts Python on them before a lane needs it."""

import logging
import time
from typing import Final

from py4j.protocol import Py4JError
from pyspark import InheritableThread, SparkContext

log = logging.getLogger(__name__)
EVERY_S: Final = 2.0


class IdleExecutors:
    """Warms executors that join. A lane whose executor is lost then finds code, JVM and daemon of an idle one ready."""

    def __init__(self, context: SparkContext) -> None:
        self._context = context
        self._is_cluster = not context.master.startswith("local")
        self._seen: frozenset[str] = frozenset()
        self._thread: InheritableThread | None = None
        self._next_s = 0.0

    def poll(self, busy: int) -> None:
        """Run a task on each idle executor if one has joined since the last call. `busy`: executors with a task.

        The executors are looked up in a thread: the driver must not wait for Spark, and does not need the result.
        """
        if not self._is_cluster or time.monotonic() < self._next_s:
            return
        if self._thread is None or not self._thread.is_alive():
            self._next_s = time.monotonic() + EVERY_S
            self._thread = InheritableThread(target=self._warm, args=(busy,), daemon=True)
            self._thread.start()

    def _warm(self, busy: int) -> None:
        try:
            joined = self._executors()
            idle = len(joined) - busy
            if joined - self._seen and idle > 0:
                self._context.setLocalProperty("spark.scheduler.pool", "warm")
                self._context.parallelize(range(idle), idle).foreach(_do_nothing)
            self._seen = joined
        except (Py4JError, OSError) as exc:  # the driver notices itself that the JVM is gone
            log.warning("idle executors were not warmed: %s", str(exc)[:200])

    def _executors(self) -> frozenset[str]:
        """Return the addresses of all executors."""
        status = self._context._jsc.sc().getExecutorMemoryStatus()  # Python's API does not have it
        driver = self._context._jsc.sc().env().blockManager().blockManagerId().hostPort()
        return frozenset(status.keySet().mkString(",").split(",")) - {driver}


def _do_nothing(_: int) -> None:
    """Run in a Python worker."""
