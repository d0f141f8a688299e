"""Registry of a lane's destinations, kept up to date with the control table and with other lanes' signals."""

import time
from collections.abc import Iterator

import msgspec

from dataplane.causes import Cause
from dataplane.names import LaneKind
from dataplane.runtime.lanes.context import LaneContext
from dataplane.spec import HttpDestination
from dataplane.tables.records import CellRecord, DestinationRecord, PipeRecord, Record
from dataplane.tables.sealed import opener
from dataplane.tables.signals import DestinationSignal, reported_slowness
from dataplane.transmit.destinations.targets import DestinationTarget, LaneShare
from dataplane.transmit.http.secrets import OpenedSecrets, open_secrets
from dataplane.transmit.policy.limits import lane_share

_NOWHERE = HttpDestination(url="")


class TargetRegistry:
    """Targets by pipe and name. `find` creates a target on first use; later records and signals change it in place."""

    def __init__(self, lane: LaneContext) -> None:
        self._table = lane.table
        self._kind: LaneKind = lane.identity.kind
        self._cell = lane.identity.cell
        self._knows_slow = "slow" in lane.cell.topics  # a cell of an earlier release has no `slow` topic yet
        self._open = opener(lane.settings.fernet_keys)
        self._known: dict[tuple[str, str], DestinationTarget] = {}
        self._signals: dict[tuple[str, str], dict[str, DestinationSignal]] = {}  # the latest signal of each writer
        self._lane_share = self._cell_share(lane.cell)
        lane.table.on_change(self._changed)

    def __iter__(self) -> Iterator[DestinationTarget]:
        return iter(self._known.values())

    def find(self, pipe: str, name: str) -> DestinationTarget:
        """Return the target; it is locked for as long as the control table has no record of it."""
        target = self._known.get((pipe, name))
        return target if target is not None else self._create(pipe, name)

    def shared(self, since_s: float) -> bool:
        """Return True if messages for more than one destination were read since `since_s` (monotonic)."""
        return sum(target.taken_s >= since_s for target in self._known.values()) > 1

    def on_signal(self, signal: DestinationSignal) -> None:
        """Apply the state of a destination that another lane, or this one before a restart, has published."""
        key = (signal.pipe, signal.destination)
        self._signals.setdefault(key, {})[signal.writer] = signal
        target = self._known.get(key)
        if target is not None:
            _apply_signal(target, signal)

    def _create(self, pipe: str, name: str) -> DestinationTarget:
        record = self._table.destination(pipe, name)
        known = record or DestinationRecord(pipe, name, 0, "active", _NOWHERE, [])
        secrets = open_secrets(known, self._open) if record else OpenedSecrets(Cause.UNKNOWN_DESTINATION)
        target = self._known[pipe, name] = DestinationTarget(known, secrets, self._share_of(pipe), time.monotonic())
        pipe_record = self._table.pipe(pipe)
        if pipe_record is not None:
            _apply_pipe(target, pipe_record)
        for signal in sorted(self._signals.get((pipe, name), {}).values(), key=lambda signal: signal.at_us):
            _apply_signal(target, signal)
        return target

    def _changed(self, record: Record) -> None:
        match record:
            case DestinationRecord():
                target = self._known.get((record.pipe, record.name))
                if target is not None:
                    new_share = self._share_of(record.pipe)
                    target.adopt(record, open_secrets(record, self._open), new_share, time.monotonic())
            case PipeRecord():
                new_share = self._share_of(record.pipe)
                for (pipe, _), target in self._known.items():
                    if pipe == record.pipe:
                        _apply_pipe(target, record)
                        if target.lane_share != new_share:
                            target.set_share(new_share, time.monotonic())
            case CellRecord() if record.cell == self._cell:
                self._lane_share = self._cell_share(record)
                for (pipe, _), target in self._known.items():
                    target.set_share(self._share_of(pipe), time.monotonic())

    def _share_of(self, pipe: str) -> LaneShare:
        """Return the lane's share for a pipe. While a pipe migrates, both cells send, each with half of the limits."""
        record = self._table.pipe(pipe)
        shared = record is not None and record.leaving
        own = self._lane_share
        return msgspec.structs.replace(own, share=own.share / 2) if shared else own

    def _cell_share(self, cell: CellRecord) -> LaneShare:
        return LaneShare(
            prober=self._kind == "transmit-retry",
            share=lane_share(1.0, self._kind, cell.lanes),
            diverts=self._kind == "transmit" and self._knows_slow and cell.lanes.get("transmit-slow", 0) > 0,
        )


def _apply_pipe(target: DestinationTarget, record: PipeRecord) -> None:
    target.pipe_paused = record.state == "paused"
    target.tenant = record.tenant


def _apply_signal(target: DestinationTarget, signal: DestinationSignal) -> None:
    """Apply a signal to a target, unless it was seen under an older record: the address may have changed since."""
    if signal.of_version < target.record.version:
        return
    if signal.suspended:
        target.suspend(signal.suspended)
    _apply_slowness(target, signal)
    now_us, now_s = time.time_ns() // 1_000, time.monotonic()
    if signal.breaker == "closed":
        from_prober = signal.writer.startswith("transmit-retry-")
        if from_prober and target.breaker.state != "closed" and signal.at_us > target.opened_us:
            target.breaker.close(now_s)
    elif target.breaker.state == "closed" and (signal.until_us > now_us or target.lane_share.prober):
        # A prober also adopts an opening whose time is over: one lane has to probe, and to publish the recovery.
        target.breaker.adopt_open(now_s, now_s + (signal.until_us - now_us) / 1_000_000)
        target.opened_us = signal.at_us
        target.is_close_unpublished = target.lane_share.prober


def _apply_slowness(target: DestinationTarget, signal: DestinationSignal) -> None:
    is_slow = reported_slowness(signal)
    if is_slow is not None and is_slow != target.slowness.is_slow and signal.at_us > target.slow_us:
        target.slowness.become(is_slow)
        target.slow_us = signal.at_us
