"""Bounds steps that ask identity providers: by the time of each, and by the number of them at a time.

The resolver of the system has no time limit: what a slow provider or name server costs is bounded by the number of
steps at a time, so the other threads of the pages stay free.
"""

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Condition
from typing import Final

from mgmt.errors import SsoError

TOTAL_S: Final = 10.0  # of one step with all its requests
MOST_STEPS: Final = 3  # at a time in this process, of the threads of the pages (config.front.app)
MOST_WAITING: Final = 3  # at a time
MOST_WAITING_OF_ONE: Final = 2
WAIT_S: Final = 2.0  # two people of one tenant sign in at the same moment

_deadline: ContextVar[float | None] = ContextVar("deadline of the step", default=None)


class StepSlots:
    """Slots of steps: one at a time for each tenant, `MOST_STEPS` in all. A few threads wait a short time for one."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._running: set[str] = set()
        self._waiting: Counter[str] = Counter()

    def take(self, who: str) -> None:
        """Take a slot. Raises SsoError if none is free within `WAIT_S`, or if too many wait already."""
        with self._changed:
            if not self._is_free(who) and not self._wait_for(who):
                raise SsoError("Single sign-on is busy, because a provider responds slowly. Try again in a minute.")
            self._running.add(who)

    def release(self, who: str) -> None:
        """Release the slot."""
        with self._changed:
            self._running.remove(who)
            self._changed.notify_all()

    def _wait_for(self, who: str) -> bool:
        if self._waiting.total() >= MOST_WAITING or self._waiting[who] >= MOST_WAITING_OF_ONE:
            return False
        self._waiting[who] += 1
        try:
            return self._changed.wait_for(lambda: self._is_free(who), WAIT_S)
        finally:
            self._waiting[who] -= 1

    def _is_free(self, who: str) -> bool:
        return who not in self._running and len(self._running) < MOST_STEPS


_slots: Final = StepSlots()


@contextmanager
def provider_step(who: str) -> Iterator[None]:
    """Bound a step that asks the provider of a tenant, as `StepSlots` and by `TOTAL_S`. A step within a step is one.

    Raises SsoError if too many steps run.
    """
    if _deadline.get() is not None:
        yield
        return
    _slots.take(who)
    before = _deadline.set(time.monotonic() + TOTAL_S)
    try:
        yield
    finally:
        _deadline.reset(before)
        _slots.release(who)


def seconds_left() -> float:
    """Return the time until the deadline of the step: at most 0 after it, or outside of a step."""
    return (_deadline.get() or 0.0) - time.monotonic()
