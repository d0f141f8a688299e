"""Collects lags between two checkpoints: cheap appends in the loop, arithmetic once when the checkpoint freezes."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dataplane.ledger.audit import LagSet
from dataplane.ledger.sketch import Sketch

# What a sketch is filed under: pipe, node, bucket, and "in" (on arrival) or "out" (on departure). A plain tuple: one is
# made for every message.
LagKey = tuple[str, str, int, str]


class _Arrays:
    """Each list of times as an array, made once: the same messages pass several points."""

    def __init__(self) -> None:
        self._known: dict[int, NDArray[np.int64]] = {}

    def of(self, times: Sequence[int]) -> NDArray[np.int64]:
        """`times` must live as long as this does: it is known by its identity."""
        known = self._known.get(id(times))
        if known is None:
            known = self._known[id(times)] = np.array(times, dtype=np.int64)
        return known


class LagBook:
    """Lags per (pipe, node, bucket, way) since the last `clear`."""

    def __init__(self) -> None:
        self._passes: dict[LagKey, list[tuple[int, Sequence[int]]]] = {}
        self._singles: dict[LagKey, list[int]] = {}

    def add_pass(self, key: LagKey, now_us: int, event_times_us: Sequence[int]) -> None:
        """Many messages passed a point at the same moment."""
        if len(event_times_us) == 1:
            self.add(key, now_us - event_times_us[0])
            return
        self._passes.setdefault(key, []).append((now_us, event_times_us))

    def add(self, key: LagKey, lag_us: int) -> None:
        """One message passed a point with this lag."""
        self._singles.setdefault(key, []).append(lag_us)

    def add_all(self, key: LagKey, lags_us: Sequence[int]) -> None:
        """Many messages passed a point, each at its own moment."""
        self._singles.setdefault(key, []).extend(lags_us)

    def __len__(self) -> int:
        return len(self._passes) + len(self._singles)

    def sketches(self) -> list[LagSet]:
        """Return everything collected so far, as sketches for an audit record."""
        sketches: dict[LagKey, Sketch] = {}
        arrays = _Arrays()
        for key, passes in self._passes.items():
            lags = [now_us - arrays.of(times) for now_us, times in passes]
            sketches.setdefault(key, Sketch()).add(np.concatenate(lags))
        for key, values in self._singles.items():
            sketches.setdefault(key, Sketch()).add(values)
        return [LagSet(*key, sketch.encode()) for key, sketch in sketches.items()]

    def clear(self) -> None:
        """Forget everything: an audit record has it."""
        self._passes, self._singles = {}, {}

    def take(self) -> list[LagSet]:
        """Return everything collected so far and forget it."""
        taken = self.sketches()
        self.clear()
        return taken
