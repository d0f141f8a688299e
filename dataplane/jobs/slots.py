"""Panes in Spark's state: rows are grouped by slot (a share of all keys) and read in the order of their topic."""

from collections.abc import Iterator
from typing import Any, Final

import msgspec
from msgspec import Struct, field
from pyroaring import BitMap64

from dataplane.ledger.units import OFFSET_BITS
from dataplane.plan.panes import KeyPanes, compile_window
from dataplane.plan.taps import TapRecord, current_body, decode_tap, key_of, result_body, result_id

KEPT: Final = 1 << 16  # positions remembered below the highest of a set: more than a lane's ack window


class KeyState(Struct, array_like=True):
    """State of one key: its panes, and the last event of the highest revision, which names pipe, window and key."""

    last: TapRecord
    panes: KeyPanes = field(default_factory=KeyPanes)


class SlotResult(Struct, frozen=True):
    """Result of a closed window, ready to enter its pipe."""

    id: str
    pipe: str
    revision: int
    window: str
    key: bytes
    end_us: int
    body: bytes


class WindowValue(Struct, frozen=True):
    """Current values of a key's open windows; `body` is None when no window of the key is open any more."""

    key: bytes
    body: bytes | None


_decoder = msgspec.msgpack.Decoder(KeyState)
encode_kept = msgspec.msgpack.Encoder().encode


def decode_kept(value: bytes) -> KeyState:
    """Decode the stored state of a key. Raises msgspec.DecodeError."""
    return _decoder.decode(value)


class RecentEvents:
    """Events that windows took recently, so that an event that a killed lane tapped twice counts once.

    There is a set for each ingest partition of a window, and for each partition of several of the taps topic: a slot
    may have read one of these further than another, and KEPT covers only repeats within one.
    """

    def __init__(self, encoded: bytes = b"", partitions: int = 1) -> None:
        self._partitions = partitions
        known: dict[str, bytes] = msgspec.msgpack.decode(encoded) if encoded else {}
        self._sets = {key: BitMap64.deserialize(positions) for key, positions in known.items()}

    def add(self, tap: TapRecord, partition: int = 0) -> bool:
        """Remember an event; return True if it is new. `partition`: of the taps topic."""
        key = f"{tap.pipe}/{tap.window}/{tap.child}/{tap.position >> OFFSET_BITS}"
        if self._partitions > 1:  # cells with one partition have state without it
            key = f"{key}/{partition}"
        positions = self._sets.setdefault(key, BitMap64())
        if tap.position in positions:
            return False
        positions.add(tap.position)
        return True

    def encode(self) -> bytes:
        """Return the sets encoded, without positions more than KEPT below the highest of their set."""
        for positions in self._sets.values():
            base = positions.max() >> OFFSET_BITS << OFFSET_BITS
            positions.remove_range(base, max(base, positions.max() - KEPT))
        return msgspec.msgpack.encode({key: positions.serialize() for key, positions in self._sets.items()})


class SlotClocks:
    """Clock of each partition of the taps topic, as one slot has read them; in microseconds since 1970."""

    def __init__(self, partitions: int, encoded: bytes = b"") -> None:
        self._partitions = partitions
        self._clocks: dict[int, int] = msgspec.msgpack.decode(encoded, type=dict[int, int]) if encoded else {}

    def note(self, partition: int, clock_us: int) -> int:
        """Advance a partition's clock; return the moment that all partitions have passed, 0 if one has no clock yet."""
        self._clocks[partition] = max(clock_us, self._clocks.get(partition, 0))
        return min(self._clocks.get(number, 0) for number in range(self._partitions))

    def encode(self) -> bytes:
        """Return the clocks encoded."""
        return msgspec.msgpack.encode(self._clocks)


class SlotBatch:
    """Batch of one slot.

    keys:             Spark's map state from a key to an encoded KeyState
    clock_us, due_us: clock and next deadline (0 if none), as the batch before left them; microseconds
    """

    def __init__(self, keys: Any, recent: RecentEvents, clock_us: int, due_us: int) -> None:
        self._keys, self.recent = keys, recent
        self.clock_us, self.due_us = clock_us, due_us
        self._known: dict[bytes, KeyState] = {}  # what this batch has read of the state, with its changes
        self._knows_all = False
        self._stored: set[bytes] = set()  # keys that are in the state
        self._changed: set[bytes] = set()
        self._published: dict[bytes, KeyState] = {}  # keys whose current values have changed

    def take(self, value: bytes, partition: int = 0) -> None:
        """Add an encoded tap to the panes of its key; ignore a repeated event. Raises msgspec.DecodeError."""
        tap = decode_tap(value)
        if not self.recent.add(tap, partition):
            return
        key = key_of(tap)
        kept = self._known.get(key) or self._load(key) or KeyState(tap)
        if tap.revision > kept.last.revision:
            kept.last = tap
        self._note_change(key, kept)
        window = compile_window(tap.definition)
        window.take(kept.panes, tap.at_us, tap.values)
        self._note_due(window.due_us(kept.panes))

    def tick(self, clock_us: int) -> Iterator[SlotResult]:
        """Advance the clock, close the windows that have ended and yield their results."""
        self.clock_us = max(self.clock_us, clock_us)
        if not self.due_us or self.due_us > self.clock_us:
            return
        self._load_all()
        self.due_us = 0
        for key, kept in list(self._known.items()):
            yield from self._close(key, kept)

    def current(self) -> Iterator[WindowValue]:
        """Yield each key that this batch has changed, once, with its values at the end of the batch."""
        for key, kept in self._published.items():
            open_ = compile_window(kept.last.definition).current(kept.panes)
            yield WindowValue(key, current_body(kept.last, open_, self.clock_us) if open_ else None)

    def store(self) -> None:
        """Write the changed keys to Spark's state, and remove those without an open window."""
        for key in self._changed:
            if (kept := self._known.get(key)) is not None:
                self._keys.updateValue((key,), (encode_kept(kept),))
                self._stored.add(key)
            elif key in self._stored:
                self._keys.removeKey((key,))
                self._stored.remove(key)
        self._changed.clear()

    def _close(self, key: bytes, kept: KeyState) -> Iterator[SlotResult]:
        window, tap = compile_window(kept.last.definition), kept.last
        closed = window.close(kept.panes, self.clock_us)
        if closed:
            self._note_change(key, kept)
        for result in closed:
            id_ = result_id(key, result)
            yield SlotResult(id_, tap.pipe, tap.revision, tap.window, tap.by, result.end_us, result_body(tap, result))
        self._note_due(window.due_us(kept.panes))
        if not kept.panes.open and kept.panes.total is None:
            self._changed.add(key)
            del self._known[key]

    def _note_change(self, key: bytes, kept: KeyState) -> None:
        self._known[key] = self._published[key] = kept
        self._changed.add(key)

    def _load(self, key: bytes) -> KeyState | None:
        if self._knows_all or key in self._changed:  # a changed key that is not known has been closed
            return None
        found = self._keys.getValue((key,))
        if found is None:
            return None
        self._stored.add(key)
        return decode_kept(bytes(found[0]))

    def _load_all(self) -> None:
        """Read the rest of the state once, because a call to Spark for each key and tick takes most of a batch."""
        if self._knows_all:
            return
        for (key,), (value,) in list(self._keys.iterator()):
            self._stored.add(bytes(key))
            if bytes(key) not in self._changed:
                self._known.setdefault(bytes(key), decode_kept(bytes(value)))
        self._knows_all = True

    def _note_due(self, due_us: int | None) -> None:
        if due_us is not None:
            self.due_us = min(self.due_us, due_us) if self.due_us else due_us
