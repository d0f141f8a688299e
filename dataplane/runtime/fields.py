"""The book of fields: which of a lane's messages are looked at, and for how much time. Told every five minutes.

Looking is paid from an allowance of time, so it never takes more than its share of the lane, whatever messages weigh.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

import msgspec

from dataplane.ledger.fields import FieldCounter, FieldSample
from dataplane.ledger.meta import Meta
from dataplane.plan.stage import StageError
from dataplane.spec.windows import WINDOW_SOURCE

TELL_MINUTES: Final = 5
SHARE: Final = 200  # looking may take one part in so many of the time
SAVED_NS: Final = 1_000_000_000  # time in which nobody looked counts up to this
EVERY_NS: Final = 200_000_000  # between two looks at one pipe
LARGEST_BYTES: Final = 32 * 1024  # larger bodies are not looked at: one look must not hold up the lane
MOST_SOURCES: Final = 500  # at a time; others wait for the next five minutes
MOST_TOLD: Final = 16  # samples in one audit record, ...
MOST_BYTES: Final = 128 * 1024  # ... which may not become too large: the one that passes this is the last
NEVER: Final = 1 << 63
_MINUTE_NS: Final = 60_000_000_000
_encode = msgspec.msgpack.Encoder().encode


class Looked(Protocol):
    """A message that may be looked at; `original`: its body as it came; `judged`: it has been here before."""

    meta: Meta
    original: bytes
    judged: bool

    def read(self) -> Any:
        """The decoded body. Raises StageError."""


class FieldBook:
    """`look` at messages as they came, `take` what is to be told.

    mode: `values` counts categories too, `names` only fields and types, `off` nothing
    """

    def __init__(
        self,
        mode: str,
        monotonic_ns: Callable[[], int] = time.monotonic_ns,
        time_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._mode = mode
        self._monotonic_ns, self._time_ns = monotonic_ns, time_ns
        self._free_ns = monotonic_ns() if mode != "off" else NEVER  # from then on one may look
        self._next_ns: dict[str, int] = {}
        self._turn = 0
        self._counters: dict[tuple[str, str], FieldCounter] = {}
        self._ended: list[tuple[str, str, int, FieldCounter]] = []
        self._span = self._span_now()
        self._hastened = False

    def look(self, pipe: str, items: Sequence[Looked], now_ns: int, *, masks: bool) -> None:
        """Look at one of these messages of a pipe, if it is time. Its steps mask something: count no values.

        now_ns: by the monotonic clock, a moment ago. A hot loop.
        """
        if now_ns < self._free_ns or now_ns < self._next_ns.get(pipe, 0):
            return
        self._turn += 1
        item = items[self._turn % len(items)]
        counter = self._counter_of(item)
        if counter is None:
            return
        if masks:
            counter.with_values = False
        self._next_ns[pipe] = now_ns + EVERY_NS
        began_ns = self._monotonic_ns()
        try:
            counter.add(item.read())
        except StageError:
            counter.add_unreadable()
        cost_ns = self._monotonic_ns() - began_ns
        self._free_ns = max(self._free_ns, now_ns - SAVED_NS) + cost_ns * SHARE

    def hasten(self) -> None:
        """The process is about to end: tell what there is."""
        self._hastened = True

    def take_if_due(self) -> list[FieldSample]:
        """Samples whose five minutes are over, a few at a time: an audit record has a limit, so has a pass."""
        span = self._span_now()
        if span != self._span or self._hastened:
            self._ended += [(*key, self._span * TELL_MINUTES, counter) for key, counter in self._counters.items()]
            self._counters, self._next_ns, self._span = {}, {}, span
        told: list[FieldSample] = []
        size_bytes = 0
        while self._ended and len(told) < MOST_TOLD and size_bytes < MOST_BYTES:
            pipe, source, bucket, counter = self._ended.pop()
            told.append(counter.told(pipe, source, bucket))
            size_bytes += len(_encode(told[-1]))
        return told

    def _counter_of(self, item: Looked) -> FieldCounter | None:
        """None if the message is not to be looked at: no customer sent it so, it is too large, or there is no room."""
        source = item.meta.source
        if item.judged or source.startswith(WINDOW_SOURCE) or len(item.original) > LARGEST_BYTES:
            return None
        key = (item.meta.pipe, source)
        counter = self._counters.get(key)
        if counter is None and len(self._counters) < MOST_SOURCES:
            counter = self._counters[key] = FieldCounter(with_values=self._mode == "values")
        return counter

    def _span_now(self) -> int:
        return self._time_ns() // (TELL_MINUTES * _MINUTE_NS)
