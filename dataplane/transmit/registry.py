"""All destinations this lane has met, kept as the control table and the other lanes' signals say."""

import time
from collections.abc import Iterator
from typing import Final

import msgspec

from dataplane.names import LaneKind
from dataplane.runtime.lane import Lane
from dataplane.spec import HttpDestination
from dataplane.tables.records import CellRecord, DestinationRecord, PipeRecord, Record
from dataplane.tables.signals import Signal
from dataplane.transmit.limits import lane_share
from dataplane.transmit.secrets import Secrets, open_secrets, opener
from dataplane.transmit.targets import Seat, Target

_NOWHERE = HttpDestination(url="")
SHUT_S: Final = 120.0  # a breaker opens for a minute: a longer time is that of another clock


class Targets:
    """`find` makes a target on first sight; later records and signals change it in place."""

    def __init__(self, lane: Lane) -> None:
        self._table = lane.table
        self._kind: LaneKind = lane.identity.kind
        self._cell = lane.identity.cell
        self._knows_slow = "slow" in lane.cell.topics  # a cell of an earlier release has no such topic yet
        self._open = opener(lane.settings.fernet_keys)
        self._known: dict[tuple[str, str], Target] = {}
        self._signals: dict[tuple[str, str], dict[str, Signal]] = {}  # the latest of each writer
        self._seat = self._take_seat(lane.cell)
        lane.table.on_change(self._changed)

    def __iter__(self) -> Iterator[Target]:
        return iter(self._known.values())

    def find(self, pipe: str, name: str) -> Target:
        """The target. One that the control table does not know yet is locked until it does."""
        target = self._known.get((pipe, name))
        return target if target is not None else self._meet(pipe, name)

    def shared(self, since_s: float) -> bool:
        """Whether messages for more than one destination came since then."""
        return sum(target.taken_s >= since_s for target in self._known.values()) > 1

    def heard(self, signal: Signal) -> None:
        """Another lane, or this one before it was started anew, says how it sees a destination."""
        place = (signal.pipe, signal.destination)
        self._signals.setdefault(place, {})[signal.writer] = signal
        target = self._known.get(place)
        if target is not None:
            _heed(target, signal)

    def _meet(self, pipe: str, name: str) -> Target:
        record = self._table.destination(pipe, name)
        known = record or DestinationRecord(pipe, name, 0, "active", _NOWHERE, [])
        secrets = open_secrets(known, self._open) if record else Secrets("unknown-destination")
        target = self._known[pipe, name] = Target(known, secrets, self._seat_of(pipe), time.monotonic())
        pipe_record = self._table.pipe(pipe)
        target.pipe_paused = pipe_record is not None and pipe_record.state == "paused"
        for signal in sorted(self._signals.get((pipe, name), {}).values(), key=lambda signal: signal.at_us):
            _heed(target, signal)
        return target

    def _changed(self, record: Record) -> None:
        match record:
            case DestinationRecord():
                target = self._known.get((record.pipe, record.name))
                if target is not None:
                    seat = self._seat_of(record.pipe)
                    target.adopt(record, open_secrets(record, self._open), seat, time.monotonic())
            case PipeRecord():
                seat = self._seat_of(record.pipe)
                for (pipe, _), target in self._known.items():
                    if pipe == record.pipe:
                        target.pipe_paused = record.state == "paused"
                        if target.seat != seat:
                            target.sit(seat, time.monotonic())
            case CellRecord() if record.cell == self._cell:
                self._seat = self._take_seat(record)
                for (pipe, _), target in self._known.items():
                    target.sit(self._seat_of(pipe), time.monotonic())

    def _seat_of(self, pipe: str) -> Seat:
        """While a pipe leaves a cell for another, both send: each has half of what its destinations take."""
        record = self._table.pipe(pipe)
        shared = record is not None and record.leaving
        return msgspec.structs.replace(self._seat, share=self._seat.share / 2) if shared else self._seat

    def _take_seat(self, cell: CellRecord) -> Seat:
        return Seat(
            prober=self._kind == "transmit-retry",
            share=lane_share(1.0, self._kind, cell.lanes),
            diverts=self._kind == "transmit" and self._knows_slow and cell.lanes.get("transmit-slow", 0) > 0,
        )


def _heed(target: Target, signal: Signal) -> None:
    """What was seen under an older record counts no more: the address may have been mended since."""
    if signal.of_version < target.record.version:
        return
    if signal.suspended:
        target.suspend(signal.suspended)
    _heed_slowness(target, signal)
    now_us, now_s = time.time_ns() // 1_000, time.monotonic()
    if signal.breaker == "closed":
        from_prober = signal.writer.startswith("transmit-retry-")
        if from_prober and target.breaker.state != "closed" and signal.at_us > target.opened_us:
            target.breaker.close(now_s)
    elif target.breaker.state == "closed" and (signal.until_us > now_us or target.seat.prober):
        # A prober believes an opening whose time is over, too: somebody has to find out, and to say that it is well.
        target.breaker.adopt_open(now_s, now_s + min((signal.until_us - now_us) / 1_000_000, SHUT_S))
        target.opened_us = signal.at_us
        target.owes_word = target.seat.prober


def _heed_slowness(target: Target, signal: Signal) -> None:
    """A lane of first attempts finds a destination slow; that it is so no more only the slow lane can see."""
    is_first, is_slow_lane = (signal.writer.rpartition("-")[0] == kind for kind in ("transmit", "transmit-slow"))
    tells = signal.slow if is_first else is_slow_lane and not signal.slow
    if tells and signal.slow != target.slowness.is_slow and signal.at_us > target.slow_us:
        target.slowness.become(signal.slow)
        target.slow_us = signal.at_us
