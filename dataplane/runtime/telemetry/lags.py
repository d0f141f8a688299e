"""Timing collected between two checkpoints: cheap appends in the loop, arithmetic once when the checkpoint freezes.

A passage is recorded when it is over, arrival and departure together, so that both lags and the duration of a node
always cover the same messages. A message that never leaves a node has no timing there.
"""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from dataplane.ledger.audit import LagSet
from dataplane.ledger.breakdown import Breakdown
from dataplane.ledger.sketch import FEW, LagSketch

NodeKey = tuple[str, str, int]  # pipe, node, bucket; a plain tuple, because one is made for every message
_Times = NDArray[np.int64]


class _Passages(Struct):
    """Timing of the messages that left one node, in the order in which they were recorded.

    together:             arrival, duration and event times of each group of messages that passed together
    lags_in, took_us:     lag and process duration of messages that passed one by one
    sources_us, spent_us: source lag and time by slice of those that the node delivered
    """

    together: list[tuple[int, int, Sequence[int]]] = field(default_factory=list)
    lags_in: list[int] = field(default_factory=list)
    took_us: list[int] = field(default_factory=list)
    sources_us: list[int] = field(default_factory=list)
    spent_us: list[Sequence[int]] = field(default_factory=list)


class LagBook:
    """Timing per (pipe, node, bucket) since the last `clear`. All times are microseconds."""

    def __init__(self) -> None:
        self._passages: defaultdict[NodeKey, _Passages] = defaultdict(_Passages)

    def add_group(self, key: NodeKey, arrived_us: int, took_us: int, times_us: Sequence[int]) -> None:
        """Record messages with these event times that arrived and left together."""
        if len(times_us) == 1:
            self.add(key, arrived_us - times_us[0], took_us)
        else:
            self._passages[key].together.append((arrived_us, took_us, times_us))

    def add(self, key: NodeKey, lag_in_us: int, took_us: int) -> None:
        """Record one message."""
        passages = self._passages[key]
        passages.lags_in.append(lag_in_us)
        passages.took_us.append(took_us)

    def add_all(self, key: NodeKey, lags_in_us: Sequence[int], took_us: Sequence[int]) -> None:
        """Record messages that arrived and left at different times."""
        passages = self._passages[key]
        passages.lags_in.extend(lags_in_us)
        passages.took_us.extend(took_us)

    def add_delivered(self, key: NodeKey, took_us: int, source_us: int, spent_us: Sequence[int]) -> None:
        """Record one delivered message: its source lag, and its time by slice since ingest.

        Its lags derive from the message itself: lag_out is the source lag plus all time spent since ingest.
        """
        passages = self._passages[key]
        passages.lags_in.append(source_us + sum(spent_us) - took_us)
        passages.took_us.append(took_us)
        passages.sources_us.append(source_us)
        passages.spent_us.append(spent_us)

    def __len__(self) -> int:
        return len(self._passages)

    def sketches(self) -> list[LagSet]:
        """Return the timing so far, as lag sets for an audit record."""
        arrays = _Arrays()
        return [one for key, passages in self._passages.items() for one in _lag_sets(key, passages, arrays)]

    def clear(self) -> None:
        """Forget everything, once an audit record contains it."""
        self._passages = defaultdict(_Passages)

    def take(self) -> list[LagSet]:
        """Return the timing so far and forget it."""
        taken = self.sketches()
        self.clear()
        return taken


class _Arrays:
    """Cache of each list of times as an array: the same messages pass several nodes."""

    def __init__(self) -> None:
        self._known: dict[int, _Times] = {}

    def of(self, times: Sequence[int]) -> _Times:
        """Return the array of `times`, which is cached by identity and must live as long as this cache."""
        known = self._known.get(id(times))
        if known is None:
            known = self._known[id(times)] = np.array(times, dtype=np.int64)
        return known


def _lag_sets(key: NodeKey, passages: _Passages, arrays: _Arrays) -> list[LagSet]:
    lag_in, lag_out, own = LagSketch(), LagSketch(), LagSketch()
    if together := passages.together:
        arrivals = [arrived_us - arrays.of(times) for arrived_us, _, times in together]
        departures = [lags_us + took_us for lags_us, (_, took_us, _) in zip(arrivals, together, strict=True)]
        lag_in.add(np.concatenate(arrivals))
        lag_out.add(np.concatenate(departures))
        own.add([took_us for _, took_us, _ in together], [len(times) for _, _, times in together])
    if singles := passages.lags_in:
        lag_in.add(singles)
        lag_out.add(_sums(singles, passages.took_us))
        own.add(passages.took_us)
    return [
        LagSet(*key, "in", lag_in.encode()),
        LagSet(*key, "out", lag_out.encode(), _breakdown(passages)),
        LagSet(*key, "own", own.encode()),
    ]


def _sums(left: list[int], right: list[int]) -> list[int] | _Times:
    if len(left) <= FEW:
        return [a + b for a, b in zip(left, right, strict=True)]
    return np.array(left, dtype=np.int64) + np.array(right, dtype=np.int64)


def _breakdown(passages: _Passages) -> bytes:
    if not passages.spent_us:
        return b""
    breakdown = Breakdown()
    breakdown.add(passages.sources_us, passages.spent_us)
    return breakdown.encode()
