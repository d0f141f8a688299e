"""Limit the time of request bodies. One sweep a second checks all in progress; a timer per request costs more."""

import asyncio
import time
from typing import Any, Final, cast

from dataplane.ingest.problems import EventRejectedError

SWEEP_S: Final = 1.0
_Task = asyncio.Task[Any]


class SlowBodyMonitor:
    """Requests that are reading their body, with the time at which each began.

    Call `begin` before and `end` after, and `broken_off` if the request was cancelled meanwhile. There is no coroutine
    per request, because it would cost every request.
    """

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._since: dict[_Task, float] = {}
        self._ended: set[_Task] = set()

    def begin(self) -> _Task:
        """Note that the current task begins to read a body; return the task."""
        task = cast(_Task, asyncio.current_task())
        self._since[task] = time.monotonic()
        return task

    def end(self, task: _Task) -> None:
        """Note that the task has stopped reading its body."""
        del self._since[task]

    def broken_off(self, task: _Task) -> EventRejectedError | None:
        """Return the refusal `body-slow` if the sweep cancelled the request, else None."""
        if task not in self._ended:
            return None
        self._ended.discard(task)
        task.uncancel()
        return EventRejectedError(408, "body-slow", f"needs the whole body within {self._limit_s:.0f} s")

    async def sweep(self) -> None:
        """Cancel requests over the time limit, once a second, until cancelled."""
        while True:
            await asyncio.sleep(SWEEP_S)
            oldest = time.monotonic() - self._limit_s
            for task, since in list(self._since.items()):
                if since < oldest:
                    self._ended.add(task)
                    task.cancel()
