"""Spans of a Celery worker's tasks, if OpenTelemetry's variables enable tracing: each task is a trace of its own."""

from typing import TYPE_CHECKING, Any

from celery import signals

from config.tracing import tracing_of
from dataplane.runtime.telemetry.tracing import Tracing

if TYPE_CHECKING:
    from opentelemetry.trace import Span


class TaskTracing:
    """Open spans by task id. Called by Celery's signals, from the threads that run the tasks."""

    def __init__(self, tracing: Tracing) -> None:
        self._tracing = tracing
        self._open: dict[str, Span] = {}

    def begin(self, task_id: str, task: Any, **_: Any) -> None:
        """Open the span of a task."""
        self._open[task_id] = self._tracing.begin(task.name, "consumer", {"messaging.operation.type": "process"})

    def end(self, task_id: str, state: str | None = None, **_: Any) -> None:
        """End the span of a task, with its state."""
        span = self._open.pop(task_id)
        span.set_attribute("penstock.state", state or "none")
        if state == "FAILURE":
            self._tracing.fail(span, "failure")
        span.end()


@signals.worker_ready.connect
def trace(**_: Any) -> None:
    """Trace the worker's tasks from now on, if tracing is enabled."""
    tracing = tracing_of("penstock-worker")
    if tracing is not None:
        tasks = TaskTracing(tracing)
        signals.task_prerun.connect(tasks.begin, weak=False)
        signals.task_postrun.connect(tasks.end, weak=False)
