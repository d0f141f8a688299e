"""Admission of pipes by shares of their keys in a process lane: one gate for each pipe and partition.

The pipe's control record states the admitted share. Released messages return through the retrier, like all messages
held before the steps. Only the gate keeps the order (dataplane.process.gate), so processes need not agree on a time.
"""

import time
from collections.abc import Iterable, Sequence
from functools import partial
from hashlib import blake2b
from itertools import groupby
from typing import Final

from dataplane.causes import Cause
from dataplane.names import ALL_KEYS_PERCENT
from dataplane.process.gate import GatePassage, OrderGate, lots_in
from dataplane.process.item import ProcessItem, offset_of
from dataplane.runtime.lanes.context import LaneContext
from dataplane.tables.records import PipeRecord

NEAR_US: Final = 10_000_000  # messages held this recently mean that the release has nearly caught up
KEPT_S: Final = 20.0  # longer than recently held messages take to return
MOST_BYTES: Final = 32 * 1024 * 1024  # kept in memory by one lane
ITEM_OVERHEAD_BYTES: Final = 1_024  # of an item, in addition to its body
NOTE_BYTES: Final = 4_000  # a broker accepts 4096 bytes of metadata with an offset


class ProcessAdmission:
    """Gates of a lane.

    pipes: the pipes that are admitted by shares or still have held messages; only their messages pass the gates
    """

    def __init__(self, lane: LaneContext) -> None:
        self._lane = lane
        self._gates: dict[tuple[str, int], OrderGate[ProcessItem]] = {}
        self._kept_since: dict[tuple[str, int], float] = {}
        self._cell = lane.identity.cell
        self._partly: set[str] = set()
        self._closed: set[str] = set()
        self.pipes: set[str] = set()
        lane.table.on_change(self._changed)

    def admit(self, pipe: str, partition: int, items: Sequence[ProcessItem]) -> GatePassage[ProcessItem]:
        """Return the messages to run and to hold now; the rest is kept. `items` are in the order of the partition."""
        gate = self._gates.get((pipe, partition)) or self._open(pipe, partition, [], offset_of(items[0]))
        passage: GatePassage[ProcessItem] = GatePassage([], [])
        admitted, used = self._admitted(pipe), self._used_bytes()
        for item in items:
            result = self._one(gate, item, admitted, room=used < MOST_BYTES)
            passage.run.extend(result.run)
            passage.hold.extend(result.hold)
            if not (result.run or result.hold):
                used += _size(item)
        self._note_time(pipe, partition, gate)
        return passage

    def _one(
        self, gate: OrderGate[ProcessItem], item: ProcessItem, admitted: int, *, room: bool
    ) -> GatePassage[ProcessItem]:
        meta, key = item.meta, item.message.key()
        if meta.share:
            lot, meta.share = meta.share - 1, 0
            gate.near = _now_us() - meta.ingest_time_us < NEAR_US
            return gate.returns(lot, meta.position, offset_of(item), item)
        if item.back:
            return GatePassage([item], [])
        lot = lot_of(key or meta.id.encode())
        if key is None:  # without a key there is no order to keep
            passage: GatePassage[ProcessItem] = GatePassage([item], []) if lot < admitted else GatePassage([], [item])
        else:
            passage = gate.arrives(lot, meta.position, offset_of(item), item, admitted=admitted, room=room)
        return _marked(passage)

    def close(self, pipe: str) -> None:
        """Admit nothing of a pipe from now on, regardless of its control record."""
        self._closed.add(pipe)
        self._watch()

    def reopen(self, pipe: str) -> None:
        """Admit the share of the pipe's control record again."""
        self._closed.discard(pipe)
        self._watch()

    def hold_back(self, pipe: str, partition: int, items: Sequence[ProcessItem]) -> list[ProcessItem]:
        """Return the messages to hold now; keep the others until earlier messages of their lots are settled.

        None of them has run, though some may have been admitted. `items` are in the order of the partition.
        """
        gate = self._gates.get((pipe, partition)) or self._open(pipe, partition, [], offset_of(items[0]))
        gate.not_run({offset_of(item) for item in items})
        hold = []
        for item in items:
            if (key := item.message.key()) is None:
                hold.append(item)
            else:
                lot, position = lot_of(key), item.meta.position
                hold += gate.arrives(lot, position, offset_of(item), item, admitted=0, room=False).hold
        self._note_time(pipe, partition, gate)
        return _marked(GatePassage([], hold)).hold

    def poll(self) -> Iterable[tuple[str, int, list[ProcessItem]]]:
        """Yield (pipe, partition, messages) to hold: they were kept too long, or block others in their partition."""
        now_s = time.monotonic()
        for (pipe, partition), since_s in list(self._kept_since.items()):
            gate = self._gates[pipe, partition]
            must_hold = now_s - since_s > KEPT_S or self._is_crowded(partition)
            if must_hold:
                gate.near = False
            if given_up := gate.give_up() if must_hold else gate.overdue():
                self._note_time(pipe, partition, gate)
                yield pipe, partition, _marked(GatePassage([], given_up)).hold

    def forget(self, partitions: Iterable[int]) -> None:
        """Drop the kept messages of revoked partitions; the new owner reads them again.

        The shut lots stay known until the last commit, which passes them on in its note.
        """
        gone = set(partitions)
        for key, gate in self._gates.items():
            if key[1] in gone:
                gate.abandon()
                self._kept_since.pop(key, None)

    def note(self, partition: int, prefix: int, room: int = NOTE_BYTES) -> list[str]:
        """Return the shut lots for a reader that continues at offset `prefix`, as `<pipe>=<hexadecimal bit set>` each.

        room: limit in bytes; pipes beyond it are left out and tallied
        """
        entries, size = [], 0
        for (pipe, number), gate in list(self._gates.items()):
            if number != partition:
                continue
            if bits := gate.shut_at(prefix):
                entry = f"{pipe}={bits:x}"
                size += len(entry) + 1
                if size <= room:
                    entries.append(entry)
                else:
                    self._lane.tally.add(
                        f"admission: pipe={pipe} does not fit in the commit metadata: too many admissions"
                    )
            elif gate.is_idle:
                del self._gates[pipe, number]
                self._watch()
        return entries

    def recall(self, partition: int, words: Iterable[str]) -> None:
        """Restore the gates of a partition from the note of its last owner, possibly this lane."""
        self._gates = {key: gate for key, gate in self._gates.items() if key[1] != partition}
        for entry in words:
            pipe, _, bits = entry.partition("=")
            self._open(pipe, partition, lots_in(int(bits, 16)), 0)
        self._watch()

    def _open(self, pipe: str, partition: int, shut: list[int], first: int) -> OrderGate[ProcessItem]:
        """Create the gate that receives all messages from the offset `first` on."""
        earlier = partial(self._has_unsettled_below, partition, first)
        gate = self._gates[pipe, partition] = OrderGate(shut, partial(self._is_unsettled, partition), earlier)
        self._watch()
        return gate

    def _has_unsettled_below(self, partition: int, offset: int) -> bool:
        window = self._lane.windows.get(partition)
        return window is not None and window.prefix < offset

    def _is_unsettled(self, partition: int, offset: int) -> bool:
        window = self._lane.windows.get(partition)
        return window is not None and window.is_unsettled(offset)

    def _admitted(self, pipe: str) -> int:
        if pipe in self._closed:
            return 0
        record = self._lane.table.pipe(pipe)
        return self._share(record) if record is not None else ALL_KEYS_PERCENT

    def _share(self, record: PipeRecord) -> int:
        """Return the percentage of the pipe's keys that may pass in this cell."""
        is_held = record.state == "paused" and record.cause == Cause.DEPENDENCY_MISSING
        return 0 if is_held or record.held_at == self._cell else record.admitted

    def _changed(self, record: object) -> None:
        if not isinstance(record, PipeRecord):
            return
        is_partly = self._share(record) < ALL_KEYS_PERCENT
        if is_partly is not (record.pipe in self._partly):
            (self._partly.add if is_partly else self._partly.discard)(record.pipe)
            self._watch()

    def _watch(self) -> None:
        self.pipes = self._partly | self._closed | {pipe for pipe, _ in self._gates}

    def _note_time(self, pipe: str, partition: int, gate: OrderGate[ProcessItem]) -> None:
        if gate.kept:
            self._kept_since.setdefault((pipe, partition), time.monotonic())
        else:
            self._kept_since.pop((pipe, partition), None)

    def _used_bytes(self) -> int:
        return sum(_size(kept.message) for key in self._kept_since for kept in self._gates[key].kept)

    def _is_crowded(self, partition: int) -> bool:
        window = self._lane.windows.get(partition)
        return window is not None and window.span > self._lane.settings.max_unsettled // 2


def lot_of(key: bytes) -> int:
    """Return the lot (0 to 99) of a key; the hash differs from those that choose partition and revision."""
    return int.from_bytes(blake2b(key, digest_size=8, person=b"admission").digest(), "big") % ALL_KEYS_PERCENT


def stretches(items: Iterable[ProcessItem]) -> Iterable[list[ProcessItem]]:
    """Yield consecutive items of the same revision, bucket and `through` together, in the same order."""
    return (list(group) for _, group in groupby(items, _stretch))


def _marked(passage: GatePassage[ProcessItem]) -> GatePassage[ProcessItem]:
    """Set on each held message the share (1 to 100) that admits it."""
    for item in passage.hold:
        item.meta.share = lot_of(item.message.key() or item.meta.id.encode()) + 1
    return passage


def _stretch(item: ProcessItem) -> tuple[int, int, bool]:
    return item.meta.revision, item.meta.bucket, item.meta.through


def _size(item: ProcessItem) -> int:
    return item.stored_bytes + ITEM_OVERHEAD_BYTES


def _now_us() -> int:
    return time.time_ns() // 1_000
