"""Idle executors of a Spark cluster: the driver starts Python on them before a lane needs it."""

from pyspark import InheritableThread, SparkContext


class IdleExecutors:
    """Warms executors that join. A lane whose executor is lost then finds code, JVM and daemon of an idle one ready."""

    def __init__(self, context: SparkContext) -> None:
        self._context = context
        self._is_cluster = not context.master.startswith("local")
        self._seen: frozenset[str] = frozenset()
        self._thread: InheritableThread | None = None

    def poll(self, busy: int) -> None:
        """Run a task on each idle executor if one has joined since the last call. `busy`: executors with a task."""
        if not self._is_cluster or (self._thread is not None and self._thread.is_alive()):
            return
        joined = self._executors()
        idle = len(joined) - busy
        if joined - self._seen and idle > 0:
            self._thread = InheritableThread(target=self._warm, args=(idle,), daemon=True)
            self._thread.start()
        self._seen = joined

    def _executors(self) -> frozenset[str]:
        """Return the addresses of all executors."""
        status = self._context._jsc.sc().getExecutorMemoryStatus()  # Python's API does not have it
        driver = self._context._jsc.sc().env().blockManager().blockManagerId().hostPort()
        return frozenset(status.keySet().mkString(",").split(",")) - {driver}

    def _warm(self, count: int) -> None:
        self._context.setLocalProperty("spark.scheduler.pool", "warm")
        self._context.parallelize(range(count), count).foreach(_do_nothing)


def _do_nothing(_: int) -> None:
    """Run in a Python worker."""
