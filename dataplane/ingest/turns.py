"""Turns on the event loop: a request that takes long lets the others go on in between."""

import asyncio
from time import perf_counter
from typing import Final

TURN_S: Final = 0.005


class Turn:
    """The time one request may use before the others have theirs."""

    __slots__ = ("_due_s",)

    def __init__(self) -> None:
        self._due_s = perf_counter() + TURN_S

    @property
    def is_over(self) -> bool:
        """Return whether `give_way` is due. A hot path."""
        return perf_counter() > self._due_s

    async def give_way(self) -> None:
        """Let the other requests go on, then begin the next turn."""
        await asyncio.sleep(0)
        self._due_s = perf_counter() + TURN_S
