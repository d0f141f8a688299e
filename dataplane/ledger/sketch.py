"""Lag sketches: mergeable, signed, within 1 % of the exact value at every quantile; minimum and maximum are exact.

A histogram whose bucket borders grow by GAMMA (DDSketch: Masson, Rim, Lee, VLDB 2019). Implemented here instead of with
the ddsketch package, because a lane adds ten values per message: 0.02 us each through numpy instead of about 1 us.

Quantiles preserve order: if two sketches hold one value each of the same messages, and no message's value in the first
is above its value in the second, then no quantile of the first is above that of the second. The latency breakdown
(dataplane.ledger.breakdown) relies on this.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, repeat
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

GAMMA: Final = 1.02
P95: Final = 0.95  # the quantile at which lags are compared and breakdowns are drawn
FEW: Final = 16  # up to this many values, plain Python is faster than numpy
_LOG_GAMMA: Final = math.log(GAMMA)


class SketchWire(msgspec.Struct, array_like=True):
    """Content of an encoded sketch: counts by bucket key."""

    minimum: int
    maximum: int
    keys: list[int]
    counts: list[int]


_decoder = msgspec.msgpack.Decoder(SketchWire)
_limits_decoder = msgspec.msgpack.Decoder(tuple[int, int, msgspec.Raw, msgspec.Raw])
_PACKED_KEY: Final = np.dtype("<i2")
_PACKED_COUNT: Final = np.dtype("<i8")


class PackedSketch(msgspec.Struct, frozen=True):
    """Sketch as arrays, which can be joined without being decoded: the same key may occur several times.

    keys, counts: little-endian integers of 16 and 64 bits
    """

    keys: bytes
    counts: bytes
    minimum: int
    maximum: int


class LagSketch:
    """Distribution of lags or durations in microseconds; negative ones (a source clock ahead of ours) are kept."""

    __slots__ = ("_counts", "count", "max_us", "min_us")

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}
        self.count = 0
        self.min_us = 0
        self.max_us = 0

    def add(self, values_us: Sequence[int] | NDArray[np.int64], repeats: Sequence[int] | None = None) -> None:
        """Add many values at once; with `repeats`, value i is added `repeats[i]` times."""
        if len(values_us) <= FEW:
            self._add_few(values_us.tolist() if isinstance(values_us, np.ndarray) else values_us, repeats)
            return
        values = np.asarray(values_us, dtype=np.int64)
        minimum, maximum = int(values.min()), int(values.max())
        self._widen(minimum, maximum, values.size if repeats is None else sum(repeats))
        keys = _positive_keys(values) if minimum > 0 else _keys(values)
        lowest = int(keys.min())
        # bincount, because there are at most 4 500 different keys and sorting them costs ten times as much. Weighted
        # counts are floats: exact below 2**53.
        counts = np.bincount(keys - lowest, weights=repeats).astype(np.int64)
        (indexes,) = counts.nonzero()
        self._count(dict(zip((indexes + lowest).tolist(), counts[indexes].tolist(), strict=True)))

    def _add_few(self, values_us: Sequence[int], repeats: Sequence[int] | None) -> None:
        """Add values one by one: for few values, numpy's calls cost more than the arithmetic."""
        if not values_us:
            return
        self._widen(min(values_us), max(values_us), len(values_us) if repeats is None else sum(repeats))
        counts = self._counts
        for value, count in zip(values_us, repeats or repeat(1, len(values_us)), strict=True):
            key = _key(value)
            counts[key] = counts.get(key, 0) + count

    def merge(self, other: "LagSketch") -> None:
        """Add all values of another sketch."""
        if not other.count:
            return
        self._widen(other.min_us, other.max_us, other.count)
        self._count(other._counts)

    def quantile(self, q: float) -> int:
        """Return the value in microseconds below which a share `q` (0..1) lies.

        Raises ValueError if the sketch is empty.
        """
        if not self.count:
            raise ValueError("an empty sketch has no quantile")
        rank = q * (self.count - 1)
        seen = 0
        for key in sorted(self._counts):
            seen += self._counts[key]
            if seen > rank:
                return min(max(_value(key), self.min_us), self.max_us)
        return self.max_us

    def encode(self) -> bytes:
        """Return the sketch as MessagePack; the same content gives the same bytes."""
        return msgspec.msgpack.encode(self.to_wire())

    @classmethod
    def decode(cls, encoded: bytes) -> "LagSketch":
        """Decode a sketch. Raises msgspec.DecodeError."""
        return cls.from_wire(_decoder.decode(encoded))

    @staticmethod
    def least_us(encoded: bytes) -> int:
        """Return the smallest value of an encoded sketch; 0 for an empty one."""
        return _limits_decoder.decode(encoded)[0]

    def to_wire(self) -> SketchWire:
        """Return the content, for a record that holds several sketches."""
        keys = sorted(self._counts)
        return SketchWire(self.min_us, self.max_us, keys, [self._counts[k] for k in keys])

    @classmethod
    def from_wire(cls, wire: SketchWire) -> "LagSketch":
        """Return the sketch with this content."""
        sketch = cls()
        sketch._counts = dict(zip(wire.keys, wire.counts, strict=True))
        sketch.count = sum(wire.counts)
        sketch.min_us, sketch.max_us = wire.minimum, wire.maximum
        return sketch

    def _count(self, more: Mapping[int, int]) -> None:
        counts = self._counts
        if not counts:
            counts.update(more)
            return
        for key, count in more.items():
            counts[key] = counts.get(key, 0) + count

    def _widen(self, minimum: int, maximum: int, count: int) -> None:
        self.min_us = min(self.min_us, minimum) if self.count else minimum
        self.max_us = max(self.max_us, maximum) if self.count else maximum
        self.count += count


class SketchGrid:
    """Encoded sketches of many groups merged at once, for pages that read thousands; groups are rows of a matrix.

    A quantile is that of the LagSketch that merges the same sketches.
    """

    def __init__(
        self,
        groups: int,
        sketches: Iterable[tuple[int, bytes | memoryview | SketchWire]],
        packed: Sequence[tuple[int, PackedSketch]] = (),
    ) -> None:
        """Merge each sketch, given with its group's number."""
        numbered = [(group, wire) for group, one in sketches if (wire := _as_wire(one)).keys]
        lengths = [len(wire.keys) for _, wire in numbered]
        lengths += [len(one.keys) // _PACKED_KEY.itemsize for _, one in packed]
        of = np.array([group for group, _ in (*numbered, *packed)], np.int64)
        keys, counts = _joined([wire for _, wire in numbered], [one for _, one in packed])
        self._first = int(keys.min()) if lengths else 0
        width = int(keys.max()) - self._first + 1 if lengths else 1
        cells = np.repeat(of, lengths) * width + (keys - self._first)
        self._counts = np.bincount(cells, weights=counts, minlength=groups * width).astype(np.int64)
        self._counts = self._counts.reshape(groups, width)
        self._least = np.full(groups, np.iinfo(np.int64).max)
        self._most = np.full(groups, np.iinfo(np.int64).min)
        every: list[SketchWire | PackedSketch] = [wire for _, wire in numbered]
        every += [one for _, one in packed]
        np.minimum.at(self._least, of, np.array([one.minimum for one in every], np.int64))
        np.maximum.at(self._most, of, np.array([one.maximum for one in every], np.int64))

    def rows(self) -> Iterator[tuple[int, PackedSketch]]:
        """Yield each group that is not empty, with its number."""
        for group in np.flatnonzero(self._counts.sum(axis=1)).tolist():
            (at,) = self._counts[group].nonzero()
            keys, counts = (at + self._first).astype(_PACKED_KEY), self._counts[group][at].astype(_PACKED_COUNT)
            yield (
                group,
                PackedSketch(keys.tobytes(), counts.tobytes(), int(self._least[group]), int(self._most[group])),
            )

    def merged(self, size: int) -> "SketchGrid":
        """Return the grid in which each `size` consecutive groups are one."""
        return self._folded(size, axis=1)

    def of_all(self, size: int) -> "SketchGrid":
        """Return the grid of `size` groups in which each is the sum of every `size`-th group of this one."""
        return self._folded(size, axis=0)

    def _folded(self, size: int, axis: int) -> "SketchGrid":
        grid = object.__new__(SketchGrid)
        grid._first = self._first
        grid._counts = self._counts.reshape(-1, size, self._counts.shape[1]).sum(axis=axis)
        grid._least = self._least.reshape(-1, size).min(axis=axis, initial=np.iinfo(np.int64).max)
        grid._most = self._most.reshape(-1, size).max(axis=axis, initial=np.iinfo(np.int64).min)
        return grid

    def counts(self) -> list[int]:
        """Return the number of values of each group."""
        return [int(size) for size in self._counts.sum(axis=1)]

    def maxima(self) -> list[int]:
        """Return the largest value of each group; the smallest integer for an empty one."""
        return [int(most) for most in self._most]

    def quantiles(self, q: float) -> list[int | None]:
        """Return the quantile (0..1) of each group; None for an empty one."""
        sizes = self._counts.sum(axis=1)
        seen = self._counts.cumsum(axis=1) > (q * (sizes - 1))[:, None]
        keys = seen.argmax(axis=1) + self._first
        return [
            min(max(_value(int(key)), int(least)), int(most)) if size else None
            for key, size, least, most in zip(keys, sizes, self._least, self._most, strict=True)
        ]


def _as_wire(one: bytes | memoryview | SketchWire) -> SketchWire:
    return one if isinstance(one, SketchWire) else _decoder.decode(one)


def _joined(wires: Sequence[SketchWire], packed: Sequence[PackedSketch]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the keys of all sketches, and their counts."""
    of_wires = sum(len(wire.keys) for wire in wires)
    keys = np.fromiter(chain.from_iterable(wire.keys for wire in wires), np.int64, of_wires)
    counts = np.fromiter(chain.from_iterable(wire.counts for wire in wires), np.int64, of_wires)
    more_keys = np.frombuffer(b"".join(one.keys for one in packed), _PACKED_KEY)
    more_counts = np.frombuffer(b"".join(one.counts for one in packed), _PACKED_COUNT)
    return np.concatenate([keys, more_keys]), np.concatenate([counts, more_counts])


def _key(value: int) -> int:
    """Return the key of one value, by the rule of _keys."""
    if not value:
        return 0
    key = math.ceil(math.log(abs(value)) / _LOG_GAMMA) + 1
    return key if value > 0 else -key


def _keys(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the keys: 0 for 0, k+1 for the k-th bucket (gamma^(k-1), gamma^k], and -(k+1) for its negative values."""
    magnitude = np.abs(values)
    keys = _positive_keys(np.maximum(magnitude, 1))
    return np.where(magnitude == 0, 0, np.where(values < 0, -keys, keys))


def _positive_keys(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the keys of values above zero, which nearly all are, in a third of the time that _keys takes."""
    return np.ceil(np.log(values) / _LOG_GAMMA).astype(np.int64) + 1


def _value(key: int) -> int:
    """Return the middle (by ratio) of a bucket, at most (gamma-1)/(gamma+1) away from any value in it."""
    if key == 0:
        return 0
    value = round(2 * math.exp((abs(key) - 1) * _LOG_GAMMA) / (GAMMA + 1))
    return value if key > 0 else -value
