"""Sketch of the values of a numeric field: mergeable in any order, exact in its counts, at most MOST_BINS bins.

A bin holds the numbers that share their sign and the leading bits of their floating point form, so its width follows
the magnitude. At first these are PRECISION bits, or three digits: enough for a distribution, and not to recognise what
a person typed. When there are more than MOST_BINS bins, all give up as many trailing bits as needed: the uniform
collapse of UDDSketch (Epicoco, Melle, Cafaro, Pulimeno, Tangaro: "UDDSketch: Accurate Tracking of Quantiles in Data
Streams", IEEE Access 8, 2020). The bits that remain depend only on the set of all values, not on the order of values
and merges.

`dataplane.ledger.sketch` is not used for fields: it holds integers, with 2 % between its borders everywhere. Fractions
would need a scale, scores between 0.9 and 1 share five bins, and numbers of all magnitudes need thousands.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from struct import Struct as Layout
from typing import Final

import msgspec

MOST_BINS: Final = 64
PRECISION: Final = 10  # bits after the leading one: integers up to 2047 have bins of their own
_SLACK: Final = 4 * MOST_BINS  # while values are added, so that bins are merged a few times only
_MAGNITUDE: Final = (1 << 63) - 1
_SHIFT: Final = 52 - PRECISION
_INFINITE: Final = 0x7FF << 52  # bits of the number beyond the largest one
_double, _integer = Layout("<d"), Layout("<q")
_pack: Final[Callable[[float], bytes]] = _double.pack
_unpack: Final = _integer.unpack


class NumberSketchWire(msgspec.Struct, array_like=True):
    """Content of an encoded sketch. `keys`: the lowest key, then each one's distance from the one before."""

    shift: int
    keys: list[int]
    counts: list[int]


_decoder = msgspec.msgpack.Decoder(NumberSketchWire)
_encode = msgspec.msgpack.Encoder().encode


class NumberBin(msgspec.Struct, frozen=True):
    """Bin with its borders and the number of its values; both borders of the bin of zero are 0."""

    low: float
    high: float
    count: int


class NumberSketch:
    """Distribution of finite numbers: integers and fractions, negative ones and zero."""

    __slots__ = ("_counts", "_shift")

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}
        self._shift = _SHIFT  # trailing bits that the bins do not distinguish

    @property
    def count(self) -> int:
        """Number of values."""
        return sum(self._counts.values())

    def add(self, value: float) -> None:
        """Add one finite value. A hot loop."""
        (bits,) = _unpack(_pack(value))
        key = bits >> self._shift if bits >= 0 else -((bits & _MAGNITUDE) >> self._shift)
        counts = self._counts
        counts[key] = counts.get(key, 0) + 1
        if len(counts) > _SLACK:
            self._coarsen()

    def merge(self, other: "NumberSketch") -> None:
        """Add all values of another sketch."""
        other._coarsen()
        shift = max(self._shift, other._shift)
        self._move_to(shift)
        counts = self._counts
        for key, count in _shifted(other._counts, shift - other._shift).items():
            counts[key] = counts.get(key, 0) + count
        self._coarsen()

    def at(self, shift: int) -> "NumberSketch":
        """Return a sketch with the same values whose bins do not distinguish `shift` trailing bits, or more."""
        self._coarsen()
        twin = NumberSketch()
        twin._shift = max(self._shift, shift)
        twin._counts = _shifted(self._counts, twin._shift - self._shift)
        return twin

    def bins(self) -> Iterator[NumberBin]:
        """Yield the bins from the lowest numbers to the highest."""
        self._coarsen()
        for key in sorted(self._counts):
            low, high = sorted((self._border(key), self._border(key, 1)))
            yield NumberBin(low, high, self._counts[key])

    @property
    def shift(self) -> int:
        """Number of trailing bits that the bins do not distinguish."""
        self._coarsen()
        return self._shift

    def quantile(self, q: float) -> float:
        """Return the value below which a share `q` (0..1) lies, interpolated within its bin.

        Raises ValueError if the sketch is empty.
        """
        if not self._counts:
            raise ValueError("an empty sketch has no quantile")
        rank, seen = q * self.count, 0
        found = NumberBin(0, 0, 1)
        for found in self.bins():
            if seen + found.count >= rank:
                break
            seen += found.count
        return found.low + (found.high - found.low) * min(1.0, (rank - seen) / found.count)

    def encode(self) -> bytes:
        """Return the sketch as MessagePack; the same values give the same bytes, whatever their order."""
        self._coarsen()
        keys = sorted(self._counts)
        steps = keys[:1] + [after - before for before, after in pairwise(keys)]
        return _encode(NumberSketchWire(self._shift, steps, [self._counts[key] for key in keys]))

    @classmethod
    def decode(cls, encoded: bytes) -> "NumberSketch":
        """Decode a sketch. Raises msgspec.DecodeError."""
        wire = _decoder.decode(encoded)
        sketch = cls()
        sketch._shift = wire.shift
        key = 0
        for step, count in zip(wire.keys, wire.counts, strict=True):
            key += step
            sketch._counts[key] = count
        return sketch

    def _border(self, key: int, further: int = 0) -> float:
        """Return the border of a bin that is nearer to zero; with `further` 1, the other one."""
        magnitude = min((abs(key) + further) << self._shift, _INFINITE - 1) if key else 0
        (value,) = _double.unpack(_integer.pack(magnitude))
        return math.copysign(value, key) if value else 0.0

    def _move_to(self, shift: int) -> None:
        if shift > self._shift:
            self._counts, self._shift = _shifted(self._counts, shift - self._shift), shift

    def _coarsen(self) -> None:
        """Give up the fewest bits with which MOST_BINS bins suffice."""
        if len(self._counts) <= MOST_BINS:
            return
        low, high = 1, 63 - self._shift
        while low < high:
            middle = (low + high) // 2
            if len({_parent(key, middle) for key in self._counts}) > MOST_BINS:
                low = middle + 1
            else:
                high = middle
        self._move_to(self._shift + low)


def _parent(key: int, bits: int) -> int:
    return key >> bits if key >= 0 else -(-key >> bits)


def _shifted(counts: Mapping[int, int], bits: int) -> dict[int, int]:
    if not bits:
        return dict(counts)
    found: dict[int, int] = {}
    for key, count in counts.items():
        parent = _parent(key, bits)
        found[parent] = found.get(parent, 0) + count
    return found
