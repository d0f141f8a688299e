"""Metrics of a Celery worker's tasks; binds the task's name to the logs."""

import time
from typing import Any, Final

from celery import signals
from structlog.contextvars import bind_contextvars, clear_contextvars

from dataplane.runtime.telemetry.metrics_registry import MetricsRegistry

_BOARD: Final = MetricsRegistry()
_TASK_S: Final = _BOARD.histogram("penstock_task_seconds")
_began_s: dict[str, float] = {}


@signals.worker_ready.connect
def serve(**_: Any) -> None:
    """Serve the metrics at the address in PENSTOCK_METRICS."""
    _BOARD.serve()


@signals.task_prerun.connect
def begin(task_id: str, task: Any, **_: Any) -> None:
    """Start the time of a task that begins in this thread, and bind its name to the logs."""
    clear_contextvars()
    bind_contextvars(task=task.name)
    _began_s[task_id] = time.perf_counter()


@signals.task_postrun.connect
def end(task_id: str, task: Any, state: str | None = None, **_: Any) -> None:
    """Record the duration of an ended task, by its state."""
    _TASK_S.labels(task.name, state or "none").observe(time.perf_counter() - _began_s.pop(task_id))
