"""Spans of a Celery worker's tasks, where the variables of OpenTelemetry want traces: each a trace of its own."""

from typing import TYPE_CHECKING, Any

from celery import signals

from config.traced import tracing_of
from dataplane.runtime.tracing import Tracing

if TYPE_CHECKING:
    from opentelemetry.trace import Span


class Tasks:
    """Those under way, by id. Called by Celery's signals, from the threads that run them."""

    def __init__(self, tracing: Tracing) -> None:
        self._tracing = tracing
        self._open: dict[str, Span] = {}

    def begin(self, task_id: str, task: Any, **_: Any) -> None:
        """One begins."""
        self._open[task_id] = self._tracing.begin(task.name, "consumer", {"messaging.operation.type": "process"})

    def end(self, task_id: str, state: str | None = None, **_: Any) -> None:
        """One is over, however it went."""
        span = self._open.pop(task_id)
        span.set_attribute("penstock.state", state or "none")
        if state == "FAILURE":
            self._tracing.fail(span, "failure")
        span.end()


@signals.worker_ready.connect
def trace(**_: Any) -> None:
    """From now on, if traces are wanted."""
    tracing = tracing_of("penstock-worker")
    if tracing is not None:
        tasks = Tasks(tracing)
        signals.task_prerun.connect(tasks.begin, weak=False)
        signals.task_postrun.connect(tasks.end, weak=False)
