"""Panes kept in Spark's state: one group of rows is a slot, a share of all keys, read in the order of its topic."""

from collections.abc import Iterator
from typing import Any, Final

import msgspec
from msgspec import Struct, field
from pyroaring import BitMap64

from dataplane.ledger.units import OFFSET_BITS
from dataplane.plan.panes import Panes, compile_window
from dataplane.plan.taps import Tap, current_body, decode_tap, key_of, result_body, result_id

KEPT: Final = 1 << 16  # positions remembered behind the highest of a partition: more than a lane's window


class Kept(Struct, array_like=True):
    """The state of one key: its panes, and the last event of the highest revision, which names pipe, window and key."""

    last: Tap
    panes: Panes = field(default_factory=Panes)


class Result(Struct, frozen=True):
    """What a closed window says, ready to enter its pipe."""

    id: str
    pipe: str
    revision: int
    window: str
    key: bytes
    end_us: int
    body: bytes


class Current(Struct, frozen=True):
    """What the open windows of a key say now, for whoever asks; no body: it has none open any more."""

    key: bytes
    body: bytes | None


_decoder = msgspec.msgpack.Decoder(Kept)
encode_kept = msgspec.msgpack.Encoder().encode


def decode_kept(value: bytes) -> Kept:
    """Raises msgspec.DecodeError."""
    return _decoder.decode(value)


class Recent:
    """Which events windows have taken lately, so that one told twice by a killed lane is taken once."""

    def __init__(self, encoded: bytes = b"") -> None:
        known: dict[str, bytes] = msgspec.msgpack.decode(encoded) if encoded else {}
        self._sets = {key: BitMap64.deserialize(positions) for key, positions in known.items()}

    def add(self, tap: Tap) -> bool:
        """Whether it is new."""
        key = f"{tap.pipe}/{tap.window}/{tap.child}/{tap.position >> OFFSET_BITS}"
        positions = self._sets.setdefault(key, BitMap64())
        if tap.position in positions:
            return False
        positions.add(tap.position)
        return True

    def encode(self) -> bytes:
        """What is kept of it."""
        for positions in self._sets.values():
            base = positions.max() >> OFFSET_BITS << OFFSET_BITS
            positions.remove_range(base, max(base, positions.max() - KEPT))
        return msgspec.msgpack.encode({key: positions.serialize() for key, positions in self._sets.items()})


class Slot:
    """A batch of one slot. `keys` is Spark's map of key -> Kept, `clock_us` and `due_us` what the batch before left."""

    def __init__(self, keys: Any, recent: Recent, clock_us: int, due_us: int) -> None:
        self._keys, self.recent = keys, recent
        self.clock_us, self.due_us = clock_us, due_us
        self._open: dict[bytes, Kept] = {}
        self._changed: dict[bytes, Kept] = {}

    def take(self, value: bytes) -> None:
        """An event that a window takes."""
        tap = decode_tap(value)
        if not self.recent.add(tap):
            return
        key = key_of(tap)
        kept = self._open.get(key) or self._load(key) or Kept(tap)
        if tap.revision > kept.last.revision:
            kept.last = tap
        self._open[key] = self._changed[key] = kept
        window = compile_window(tap.definition)
        window.take(kept.panes, tap.at_us, tap.values)
        self._note_due(window.due_us(kept.panes))

    def tick(self, clock_us: int) -> Iterator[Result]:
        """Close what is over by the clock."""
        self.clock_us = max(self.clock_us, clock_us)
        if not self.due_us or self.due_us > self.clock_us:
            return
        self.store()
        self.due_us = 0
        for (key,), (value,) in list(self._keys.iterator()):
            yield from self._close(bytes(key), decode_kept(bytes(value)))

    def current(self) -> Iterator[Current]:
        """Every key that this batch has changed, once, as it is at the end of it."""
        for key, kept in self._changed.items():
            open_ = compile_window(kept.last.definition).current(kept.panes)
            yield Current(key, current_body(kept.last, open_, self.clock_us) if open_ else None)

    def store(self) -> None:
        """Put what has changed into Spark's state."""
        for key, kept in self._open.items():
            self._keys.updateValue((key,), (encode_kept(kept),))
        self._open.clear()

    def _close(self, key: bytes, kept: Kept) -> Iterator[Result]:
        window, tap = compile_window(kept.last.definition), kept.last
        closed = window.close(kept.panes, self.clock_us)
        if closed:
            self._changed[key] = kept
        for said in closed:
            id_ = result_id(key, said)
            yield Result(id_, tap.pipe, tap.revision, tap.window, tap.by, said.end_us, result_body(tap, said))
        self._note_due(window.due_us(kept.panes))
        if not kept.panes.open and kept.panes.total is None:
            self._keys.removeKey((key,))
        elif closed:
            self._keys.updateValue((key,), (encode_kept(kept),))

    def _load(self, key: bytes) -> Kept | None:
        found = self._keys.getValue((key,))
        return decode_kept(bytes(found[0])) if found else None

    def _note_due(self, due_us: int | None) -> None:
        if due_us is not None:
            self.due_us = min(self.due_us, due_us) if self.due_us else due_us
