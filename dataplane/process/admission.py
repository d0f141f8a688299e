"""A process lane's part in letting a pipe in by shares of its keys: one gate for each pipe and partition.

What the control plane admits is the pipe's record; what it releases comes back by the retrier, as anything that was
held before the steps. Order is kept here alone (dataplane.process.gate), so nobody has to agree on a moment.
"""

import time
from collections.abc import Iterable, Sequence
from functools import partial
from hashlib import blake2b
from itertools import groupby
from typing import Final

from dataplane.names import WHOLE
from dataplane.process.gate import Gate, Passage, lots_in
from dataplane.process.item import Item, offset_of
from dataplane.runtime.lane import Lane
from dataplane.tables.records import DEPENDENCY_MISSING, PipeRecord

NEAR_US: Final = 10_000_000  # what was held so lately is all but caught up with
KEPT_S: Final = 20.0  # longer than what is near takes to come back
MOST_BYTES: Final = 32 * 1024 * 1024  # kept by one lane
AN_ITEM_BYTES: Final = 1_024  # beside its body
NOTE_BYTES: Final = 4_000  # a broker takes 4096 beside an offset


class Admission:
    """Shown what comes for the `pipes` that are admitted by shares, or of which something is still held."""

    def __init__(self, lane: Lane) -> None:
        self._lane = lane
        self._gates: dict[tuple[str, int], Gate[Item]] = {}
        self._kept_since: dict[tuple[str, int], float] = {}
        self._cell = lane.identity.cell
        self._partly: set[str] = set()
        self._closed: set[str] = set()
        self.pipes: set[str] = set()
        lane.table.on_change(self._changed)

    def let_in(self, pipe: str, partition: int, items: Sequence[Item]) -> Passage[Item]:
        """What of these is to be run and held now; the rest is kept. They come in the order of the partition."""
        gate = self._gates.get((pipe, partition)) or self._open(pipe, partition, [], offset_of(items[0]))
        passage: Passage[Item] = Passage([], [])
        admitted, used = self._admitted(pipe), self._used_bytes()
        for item in items:
            one = self._one(gate, item, admitted, room=used < MOST_BYTES)
            passage.run.extend(one.run)
            passage.hold.extend(one.hold)
            if not (one.run or one.hold):
                used += _size(item)
        self._note_time(pipe, partition, gate)
        return passage

    def _one(self, gate: Gate[Item], item: Item, admitted: int, *, room: bool) -> Passage[Item]:
        meta, key = item.meta, item.message.key()
        if meta.share:
            lot, meta.share = meta.share - 1, 0
            gate.near = _now_us() - meta.ingest_time_us < NEAR_US
            return gate.returns(lot, meta.position, offset_of(item), item)
        if item.back:
            return Passage([item], [])
        lot = lot_of(key or meta.id.encode())
        if key is None:  # nothing to keep the order of
            passage: Passage[Item] = Passage([item], []) if lot < admitted else Passage([], [item])
        else:
            passage = gate.arrives(lot, meta.position, offset_of(item), item, admitted=admitted, room=room)
        return _marked(passage)

    def close(self, pipe: str) -> None:
        """Let nothing of a pipe in from now on, whatever its record says."""
        self._closed.add(pipe)
        self._watch()

    def reopen(self, pipe: str) -> None:
        """Let in again what the pipe's record says."""
        self._closed.discard(pipe)
        self._watch()

    def hold_back(self, pipe: str, partition: int, items: Sequence[Item]) -> list[Item]:
        """Return which of these messages are to be held now; the others are kept until what passed before is settled.

        None of them has run, though some may have been let in. They come in the order of the partition.
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
        return _marked(Passage([], hold)).hold

    def turn(self) -> Iterable[tuple[str, int, list[Item]]]:
        """What was kept in vain, by pipe and partition, to be held: it has waited too long, or others wait for it."""
        now_s = time.monotonic()
        for (pipe, partition), since_s in list(self._kept_since.items()):
            gate = self._gates[pipe, partition]
            in_vain = now_s - since_s > KEPT_S or self._is_crowded(partition)
            if in_vain:
                gate.near = False
            if given_up := gate.give_up() if in_vain else gate.overdue():
                self._note_time(pipe, partition, gate)
                yield pipe, partition, _marked(Passage([], given_up)).hold

    def forget(self, partitions: Iterable[int]) -> None:
        """The new owner reads what was kept. What is shut is told it by the last commit, which is still to come."""
        gone = set(partitions)
        for place, gate in self._gates.items():
            if place[1] in gone:
                gate.abandon()
                self._kept_since.pop(place, None)

    def note(self, partition: int, prefix: int, room: int = NOTE_BYTES) -> list[str]:
        """What is shut for who reads on from there: `<pipe>=<lots as bits, hexadecimal>`, in so many bytes at most."""
        words, size = [], 0
        for place, gate in list(self._gates.items()):
            if place[1] != partition:
                continue
            if bits := gate.shut_at(prefix):
                word = f"{place[0]}={bits:x}"
                size += len(word) + 1
                if size <= room:
                    words.append(word)
                else:
                    self._lane.tally.add(f"admission: pipe={place[0]} is not noted, too many pipes are let in at once")
            elif gate.is_idle:
                del self._gates[place]
                self._watch()
        return words

    def recall(self, partition: int, words: Iterable[str]) -> None:
        """What an earlier owner noted; it may have been ourselves."""
        self._gates = {place: gate for place, gate in self._gates.items() if place[1] != partition}
        for word in words:
            pipe, _, bits = word.partition("=")
            self._open(pipe, partition, lots_in(int(bits, 16)), 0)
        self._watch()

    def _open(self, pipe: str, partition: int, shut: list[int], first: int) -> Gate[Item]:
        """A gate that is shown everything from the offset `first` on."""
        earlier = partial(self._owes_below, partition, first)
        gate = self._gates[pipe, partition] = Gate(shut, partial(self._owes, partition), earlier)
        self._watch()
        return gate

    def _owes_below(self, partition: int, offset: int) -> bool:
        window = self._lane.windows.get(partition)
        return window is not None and window.prefix < offset

    def _owes(self, partition: int, offset: int) -> bool:
        window = self._lane.windows.get(partition)
        return window is not None and window.owes(offset)

    def _admitted(self, pipe: str) -> int:
        if pipe in self._closed:
            return 0
        record = self._lane.table.pipe(pipe)
        return self._share(record) if record is not None else WHOLE

    def _share(self, record: PipeRecord) -> int:
        """Percent of its keys that may pass here."""
        is_held = record.state == "paused" and record.cause == DEPENDENCY_MISSING
        return 0 if is_held or record.held_at == self._cell else record.admitted

    def _changed(self, record: object) -> None:
        if not isinstance(record, PipeRecord):
            return
        is_partly = self._share(record) < WHOLE
        if is_partly is not (record.pipe in self._partly):
            (self._partly.add if is_partly else self._partly.discard)(record.pipe)
            self._watch()

    def _watch(self) -> None:
        self.pipes = self._partly | self._closed | {pipe for pipe, _ in self._gates}

    def _note_time(self, pipe: str, partition: int, gate: Gate[Item]) -> None:
        if gate.kept:
            self._kept_since.setdefault((pipe, partition), time.monotonic())
        else:
            self._kept_since.pop((pipe, partition), None)

    def _used_bytes(self) -> int:
        return sum(_size(kept.message) for place in self._kept_since for kept in self._gates[place].kept)

    def _is_crowded(self, partition: int) -> bool:
        window = self._lane.windows.get(partition)
        return window is not None and window.span > self._lane.settings.max_unsettled // 2


def lot_of(key: bytes) -> int:
    """Which of the hundred lots a key is in; not by the hashes that choose partition or revision."""
    return int.from_bytes(blake2b(key, digest_size=8, person=b"admission").digest(), "big") % WHOLE


def stretches(items: Iterable[Item]) -> Iterable[list[Item]]:
    """In the same order, those that follow each other with the same revision and bucket together."""
    return (list(group) for _, group in groupby(items, lambda item: (item.meta.revision, item.meta.bucket)))


def _marked(passage: Passage[Item]) -> Passage[Item]:
    """What is held says by which share it is admitted."""
    for item in passage.hold:
        item.meta.share = lot_of(item.message.key() or item.meta.id.encode()) + 1
    return passage


def _size(item: Item) -> int:
    return len(item.original) + AN_ITEM_BYTES


def _now_us() -> int:
    return time.time_ns() // 1_000
