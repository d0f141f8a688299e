"""What a Celery worker shows as metrics; its lines in the log name the task."""

import time
from typing import Any, Final

from celery import signals
from structlog.contextvars import bind_contextvars, clear_contextvars

from dataplane.runtime.board import Board

_BOARD: Final = Board()
_TASK_S: Final = _BOARD.histogram("penstock_task_seconds")
_began_s: dict[str, float] = {}


@signals.worker_ready.connect
def serve(**_: Any) -> None:
    """Where PENSTOCK_METRICS says."""
    _BOARD.serve()


@signals.task_prerun.connect
def begin(task_id: str, task: Any, **_: Any) -> None:
    """A task begins in this thread."""
    clear_contextvars()
    bind_contextvars(task=task.name)
    _began_s[task_id] = time.perf_counter()


@signals.task_postrun.connect
def end(task_id: str, task: Any, state: str | None = None, **_: Any) -> None:
    """A task is over, however it went."""
    _TASK_S.labels(task.name, state or "none").observe(time.perf_counter() - _began_s.pop(task_id))
