"""Moves: releases of held and redrives of dead messages, as the control table asks. Done by a cell's first lane."""

import logging
import time
from typing import Final

import msgspec
from msgspec import Struct

from dataplane.retrier.errand import Errand
from dataplane.retrier.mover import Carrier
from dataplane.retrier.news import NewsReader
from dataplane.retrier.pace import Name
from dataplane.runtime.lane import Lane
from dataplane.tables.moves import (
    MOVES_VERSION,
    MoveProgress,
    Place,
    decode_offsets,
    encode_progress,
    format_place,
    move_key,
    parse_place,
)
from dataplane.tables.records import MoveRecord

log = logging.getLogger(__name__)

AT_ONCE: Final = 32  # moves under way; the rest wait for their turn
OF_A_TENANT: Final = 4  # of these: a redrive may be asked to take days, and nobody else waits behind it


class _Move(Struct):
    """A move under way, and what had been done of it when this lane began."""

    record: MoveRecord
    carrier: Carrier
    skipped: int
    known: dict[Place, int]


class Moves:
    """`turn` on every pass, `report` before every checkpoint."""

    def __init__(self, lane: Lane, reader: NewsReader) -> None:
        self._lane = lane
        self._reader = reader
        self._signals = lane.cell.topics["signals"].name
        self._waiting: dict[str, MoveRecord] = {}
        self._moves: dict[str, _Move] = {}
        lane.table.on_change(self._changed)

    def turn(self, now_s: float) -> None:
        """Begin what may begin, bring back what the rates allow."""
        if self._waiting and self._reader.at_end:
            self._begin()
        for move in self._moves.values():
            if move.record.state == "running":
                move.carrier.turn(now_s)

    def report(self) -> None:
        """Tell how far the moves have come, as far as the ledger knows it already; end those that are over."""
        for name, move in list(self._moves.items()):
            aborted = move.record.state == "aborted"
            ended = not move.carrier.errand.in_flight if aborted else move.carrier.is_over
            known = move.carrier.reached()
            if known is not None:
                move.known = known
                ended = ended and known == move.carrier.errand.reached()
                self._tell(move, done=ended)
                if ended:
                    self._end(name)

    def close(self) -> None:
        """Read no more."""
        for move in self._moves.values():
            move.carrier.close()

    @property
    def is_busy(self) -> bool:
        """Whether something is under way."""
        return bool(self._moves)

    def _changed(self, record: object) -> None:
        if not isinstance(record, MoveRecord) or record.cell != self._lane.identity.cell:
            return
        under_way = self._moves.get(record.move)
        if under_way is None:
            self._waiting[record.move] = record
        elif record.state == "aborted":
            under_way.record = record
            under_way.carrier.tell_again()

    def _begin(self) -> None:
        """In the order they came; a destination's moves one after the other."""
        for name, record in list(self._waiting.items()):
            before = self._reader.news.progress.get(name)
            if before is not None and before.done:
                del self._waiting[name]
            elif record.state == "aborted":
                del self._waiting[name]
                self._refuse(record, before, "")
            elif self._may_start(record):
                del self._waiting[name]
                self._start(record, before)

    def _may_start(self, record: MoveRecord) -> bool:
        under_way = [move.record for move in self._moves.values()]
        if any((other.pipe, other.destination) == (record.pipe, record.destination) for other in under_way):
            return False
        tenant = self._tenant_of(record)
        of_it = sum(self._tenant_of(other) == tenant for other in under_way)
        return len(under_way) < AT_ONCE and of_it < OF_A_TENANT

    def _tenant_of(self, record: MoveRecord) -> str:
        pipe = self._lane.table.pipe(record.pipe)
        return pipe.tenant if pipe is not None else record.pipe

    def _start(self, record: MoveRecord, before: MoveProgress | None) -> None:
        try:
            wanted = decode_offsets(record.offsets)
        except ValueError as exc:
            self._refuse(record, before, f"its offsets cannot be read: {exc}")
            return
        reached = before.reached if before else {}
        errand = Errand(
            Name(record.pipe, record.destination),
            record.what,
            wanted,
            {parse_place(place): offset for place, offset in reached.items()},
            through=record.through,
        )
        carrier = Carrier(self._lane, errand, record.rate_per_s)
        self._moves[record.move] = _Move(record, carrier, before.skipped if before else 0, {})
        log.info("%s of pipe=%s destination=%s: %d messages", record.what, *errand.name, errand.total)

    def _refuse(self, record: MoveRecord, before: MoveProgress | None, why: str) -> None:
        before = before or MoveProgress(MOVES_VERSION, record.move, 0, 0, 0, False, 0, {})
        self._send(msgspec.structs.replace(before, done=True, error=why))

    def _tell(self, move: _Move, *, done: bool) -> None:
        """What lies below the places reached is moved or skipped. Nothing above counts: a new start reads it again."""
        errand = move.carrier.errand
        skipped = move.skipped + errand.skipped_below(move.known)
        moved = errand.done_below(move.known) - skipped
        reached = {format_place(place): offset for place, offset in move.known.items()}
        self._send(MoveProgress(MOVES_VERSION, move.record.move, moved, skipped, errand.total, done, 0, reached))

    def _send(self, progress: MoveProgress) -> None:
        told = encode_progress(msgspec.structs.replace(progress, at_us=time.time_ns() // 1_000))
        self._lane.outbox.send(self._signals, None, key=move_key(progress.move).encode(), value=told)

    def _end(self, name: str) -> None:
        move = self._moves.pop(name)
        move.carrier.close()
        log.info("%s of pipe=%s destination=%s: over", move.record.what, move.record.pipe, move.record.destination)
