"""Bodies that come too slowly. One sweep a second over those under way, because a timer for each request costs more."""

import asyncio
import time
from typing import Any, Final, cast

from dataplane.ingest.problems import RefusalError

SWEEP_S: Final = 1.0
_Task = asyncio.Task[Any]


class SlowBodies:
    """Requests that are reading their body now, and since when.

    `begin` before, `end` after, `broken_off` if the request was cancelled meanwhile: no coroutine of its own, because
    each costs every request.
    """

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._since: dict[_Task, float] = {}
        self._ended: set[_Task] = set()

    def begin(self) -> _Task:
        """This request reads its body from now on."""
        task = cast(_Task, asyncio.current_task())
        self._since[task] = time.monotonic()
        return task

    def end(self, task: _Task) -> None:
        """It does not any more."""
        del self._since[task]

    def broken_off(self, task: _Task) -> RefusalError | None:
        """The refusal `body-slow` if it was the sweep that cancelled the request, else None."""
        if task not in self._ended:
            return None
        self._ended.discard(task)
        task.uncancel()
        return RefusalError(408, "body-slow", f"needs the whole body within {self._limit_s:.0f} s")

    async def sweep(self) -> None:
        """Break off what is over its time, once a second, for ever."""
        while True:
            await asyncio.sleep(SWEEP_S)
            oldest = time.monotonic() - self._limit_s
            for task, since in list(self._since.items()):
                if since < oldest:
                    self._ended.add(task)
                    task.cancel()
