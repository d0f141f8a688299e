"""Cooperative scheduling on the event loop: a long request yields to the others in between."""

import asyncio
from time import perf_counter
from typing import Final

TURN_S: Final = 0.005


class TimeSlice:
    """Time that one request may use before it yields to the others."""

    __slots__ = ("_due_s",)

    def __init__(self) -> None:
        self._due_s = perf_counter() + TURN_S

    @property
    def is_over(self) -> bool:
        """True if `yield_to_loop` is due. A hot path."""
        return perf_counter() > self._due_s

    async def yield_to_loop(self) -> None:
        """Yield to the other requests, then begin the next slice."""
        await asyncio.sleep(0)
        self._due_s = perf_counter() + TURN_S
