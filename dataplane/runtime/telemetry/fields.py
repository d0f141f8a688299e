"""Sampling of the fields of a lane's messages, reported every five minutes.

Sampling has a budget of time, so that it never takes more than its share of the lane, whatever the messages cost.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

import msgspec

from dataplane.ledger.fields import FieldCounter, FieldObservation
from dataplane.ledger.meta import MessageMeta
from dataplane.plan.stage import StageError
from dataplane.spec.windows import WINDOW_SOURCE

REPORT_MINUTES: Final = 5
SHARE: Final = 200  # sampling may take 1/200 of the time
SAVED_NS: Final = 1_000_000_000  # unused time counts for the budget up to this
EVERY_NS: Final = 200_000_000  # between two samples of one pipe
LARGEST_BYTES: Final = 32 * 1024  # larger bodies are not sampled: one sample must not delay the lane
MOST_SOURCES: Final = 500  # per interval; further sources wait for the next one
MOST_REPORTED: Final = 16  # observations in one audit record, ...
MOST_BYTES: Final = 128 * 1024  # ... whose size is bounded: the observation that passes this is the last
NEVER: Final = 1 << 63
_MINUTE_NS: Final = 60_000_000_000
_encode = msgspec.msgpack.Encoder().encode


class ObservedMessage(Protocol):
    """Message that may be sampled. `original` is its body as read; `judged` is True if it passed this lane before."""

    meta: MessageMeta
    original: bytes
    judged: bool

    def read(self) -> Any:
        """Return the decoded body. Raises StageError."""


class FieldBook:
    """Field counters per pipe and source: `observe` samples a message, `take_if_due` returns the finished observations.

    mode: `values` counts categories, too, `names` only fields and types, `off` nothing
    """

    def __init__(
        self,
        mode: str,
        monotonic_ns: Callable[[], int] = time.monotonic_ns,
        time_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._mode = mode
        self._monotonic_ns, self._time_ns = monotonic_ns, time_ns
        self._free_ns = monotonic_ns() if mode != "off" else NEVER  # from then on the budget allows a sample
        self._next_ns: dict[str, int] = {}
        self._turn = 0
        self._counters: dict[tuple[str, str], FieldCounter] = {}
        self._ended: list[tuple[str, str, int, FieldCounter]] = []
        self._span = self._span_now()
        self._hastened = False

    def observe(self, pipe: str, items: Sequence[ObservedMessage], now_ns: int, *, masks: bool) -> None:
        """Sample one of a pipe's messages, if one is due. `masks`: the pipe masks fields, so no values are counted.

        now_ns: a recent reading of the monotonic clock. A hot loop.
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
        """Finish the current observations now, because the process is about to end."""
        self._hastened = True

    def take_if_due(self) -> list[FieldObservation]:
        """Return observations whose interval is over, a few at a time: an audit record and a pass have limits."""
        span = self._span_now()
        if span != self._span or self._hastened:
            self._ended += [(*key, self._span * REPORT_MINUTES, counter) for key, counter in self._counters.items()]
            self._counters, self._next_ns, self._span = {}, {}, span
        observations: list[FieldObservation] = []
        size_bytes = 0
        while self._ended and len(observations) < MOST_REPORTED and size_bytes < MOST_BYTES:
            pipe, source, bucket, counter = self._ended.pop()
            observations.append(counter.observation(pipe, source, bucket))
            size_bytes += len(_encode(observations[-1]))
        return observations

    def _counter_of(self, item: ObservedMessage) -> FieldCounter | None:
        """Return the counter of a message's source, or None if it is not to be sampled.

        Not sampled are messages that passed before, windows' messages, large bodies, and sources beyond MOST_SOURCES.
        """
        source = item.meta.source
        if item.judged or source.startswith(WINDOW_SOURCE) or len(item.original) > LARGEST_BYTES:
            return None
        key = (item.meta.pipe, source)
        counter = self._counters.get(key)
        if counter is None and len(self._counters) < MOST_SOURCES:
            counter = self._counters[key] = FieldCounter(with_values=self._mode == "values")
        return counter

    def _span_now(self) -> int:
        return self._time_ns() // (REPORT_MINUTES * _MINUTE_NS)
