"""Panes: the open windows of one key, which events add to and the clock closes. Pure.

Callers clamp an event's time to [ingest_time - late_s, ingest_time] and drop late events. The clock is a moment before
which all ingested events have been read, so a pane that ends `late_s` before it gets no more events: results do not
depend on when, in which order, or in how many batches events were read.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache, reduce
from typing import Any, Final

import msgspec
from msgspec import Struct

from dataplane.spec.windows import RunningWindow, SessionWindow, SlidingWindow, TumblingWindow, WindowSpec
from dataplane.stages.aggregate import CompiledAggregate, compile_aggregate

SECOND_US: Final = 1_000_000


class Pane(Struct, array_like=True):
    """One open window: [start_us, end_us), the number of its events, and one state per aggregate."""

    start_us: int
    end_us: int
    events: int
    states: list[Any]


class WindowResult(Struct, frozen=True):
    """Result of a closed window. That of a running window covers all events since its beginning."""

    start_us: int
    end_us: int
    events: int
    values: dict[str, Any]


class KeyPanes(Struct, array_like=True):
    """State of one key. `total`: merged closed panes of a running window; None for other windows."""

    open: list[Pane] = []
    total: Pane | None = None


class CompiledWindow:
    """A window ready to run. It keeps no state: callers pass the KeyPanes of a key."""

    def __init__(self, window: WindowSpec) -> None:
        self._span = window.span
        self.late_us = window.late_s * SECOND_US
        self._names = list(window.values)
        self._folds: list[CompiledAggregate] = [compile_aggregate(value) for value in window.values.values()]

    def take(self, panes: KeyPanes, at_us: int, values: Sequence[Any]) -> None:
        """Add an event to its panes: its clamped time, and one value per aggregate (None if the event has none)."""
        if isinstance(self._span, SessionWindow):
            self._extend(panes, at_us, values, self._span.gap_s * SECOND_US)
            return
        for start_us, end_us in self._spans(at_us):
            pane = next((pane for pane in panes.open if pane.start_us == start_us), None)
            if pane is None:
                pane = self._new(start_us, end_us)
                panes.open.append(pane)
            self._fold(pane, values)

    def due_us(self, panes: KeyPanes) -> int | None:
        """Return the clock at which the next pane closes, in microseconds; None if none is open."""
        return min((pane.end_us + self.late_us for pane in panes.open), default=None)

    def close(self, panes: KeyPanes, clock_us: int) -> list[WindowResult]:
        """Close the panes that are due at `clock_us`; return their results in order of start time."""
        due = sorted((p for p in panes.open if p.end_us + self.late_us <= clock_us), key=lambda p: p.start_us)
        panes.open = [pane for pane in panes.open if pane.end_us + self.late_us > clock_us]
        if not isinstance(self._span, RunningWindow):
            return [self._result(pane) for pane in due]
        return [self._result(self._added(panes, pane)) for pane in due]

    def current(self, panes: KeyPanes) -> list[WindowResult]:
        """Return the results of open windows so far, in order of start time.

        A running window has one result, which covers all events since its beginning.
        """
        if not isinstance(self._span, RunningWindow):
            return [self._result(pane) for pane in sorted(panes.open, key=lambda pane: pane.start_us)]
        parts = [*([panes.total] if panes.total else []), *sorted(panes.open, key=lambda pane: pane.start_us)]
        return [self._result(reduce(self._merged, parts))] if parts else []

    def _spans(self, at_us: int) -> Iterable[tuple[int, int]]:
        match self._span:
            case TumblingWindow(size_s) | RunningWindow(size_s):
                size_us = every_us = size_s * SECOND_US
            case SlidingWindow(size_s, every_s):
                size_us, every_us = size_s * SECOND_US, every_s * SECOND_US
            case SessionWindow():
                return
        start_us = at_us - at_us % every_us
        while start_us + size_us > at_us:
            yield start_us, start_us + size_us
            start_us -= every_us

    def _extend(self, panes: KeyPanes, at_us: int, values: Sequence[Any], gap_us: int) -> None:
        """Open a session for the event and merge it with the sessions that it overlaps."""
        mine = self._new(at_us, at_us + gap_us)
        self._fold(mine, values)
        touching = [pane for pane in panes.open if pane.start_us < mine.end_us and mine.start_us < pane.end_us]
        rest = [pane for pane in panes.open if all(pane is not other for other in touching)]
        for pane in touching:
            first, second = (pane, mine) if pane.start_us <= mine.start_us else (mine, pane)
            mine = self._merged(first, second)
        panes.open = [*rest, mine]

    def _added(self, panes: KeyPanes, pane: Pane) -> Pane:
        panes.total = pane if panes.total is None else self._merged(panes.total, pane)
        return panes.total

    def _merged(self, one: Pane, other: Pane) -> Pane:
        states = [f.merge(a, b) for f, a, b in zip(self._folds, one.states, other.states, strict=True)]
        end_us = max(one.end_us, other.end_us)
        return Pane(min(one.start_us, other.start_us), end_us, one.events + other.events, states)

    def _new(self, start_us: int, end_us: int) -> Pane:
        return Pane(start_us, end_us, 0, [fold.empty for fold in self._folds])

    def _fold(self, pane: Pane, values: Sequence[Any]) -> None:
        pane.events += 1
        for number, (fold, value) in enumerate(zip(self._folds, values, strict=True)):
            if value is not None:
                pane.states[number] = fold.add(pane.states[number], value)

    def _result(self, pane: Pane) -> WindowResult:
        results = [fold.result(state) for fold, state in zip(self._folds, pane.states, strict=True)]
        return WindowResult(pane.start_us, pane.end_us, pane.events, dict(zip(self._names, results, strict=True)))


@lru_cache(maxsize=1_000)
def compile_window(definition: bytes) -> CompiledWindow:
    """Compile a window from the JSON definition that each tap record carries."""
    return CompiledWindow(msgspec.json.decode(definition, type=WindowSpec))
