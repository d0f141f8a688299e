"""Bodies that come too slowly. One sweep a second over those under way, because a timer for each request costs more."""

import asyncio
import time
from collections.abc import Awaitable
from typing import Final, cast

from dataplane.ingest.problems import RefusalError

SWEEP_S: Final = 1.0


class SlowBodies:
    """Requests that are reading their body now, and since when."""

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._since: dict[asyncio.Task[object], float] = {}
        self._ended: set[asyncio.Task[object]] = set()

    async def read(self, body: Awaitable[bytes]) -> bytes:
        """Await a body. Raises RefusalError `body-slow` if it takes longer than the limit."""
        task = cast(asyncio.Task[object], asyncio.current_task())
        self._since[task] = time.monotonic()
        try:
            return await body
        except asyncio.CancelledError:
            if task not in self._ended:
                raise
            self._ended.discard(task)
            task.uncancel()
            raise RefusalError(408, "body-slow", f"needs the whole body within {self._limit_s:.0f} s") from None
        finally:
            del self._since[task]

    async def sweep(self) -> None:
        """Break off what is over its time, once a second, for ever."""
        while True:
            await asyncio.sleep(SWEEP_S)
            oldest = time.monotonic() - self._limit_s
            for task, since in list(self._since.items()):
                if since < oldest:
                    self._ended.add(task)
                    task.cancel()
