"""Releases of held and redrives of dead messages, as the control table asks. A cell's first retrier lane does them."""

import logging
import time
from typing import Final

import msgspec
from msgspec import Struct

from dataplane.names import PartitionKey
from dataplane.retrier.redrive_job import RedriveJob
from dataplane.retrier.redriver import Redriver
from dataplane.retrier.release_pacer import DestinationKey
from dataplane.retrier.signal_state import SignalReader
from dataplane.runtime.lanes.context import LaneContext
from dataplane.tables.records import RedriveRecord
from dataplane.tables.redrives import (
    REDRIVES_VERSION,
    RedriveProgress,
    decode_offsets,
    encode_progress,
    format_place,
    parse_place,
    redrive_key,
)

log = logging.getLogger(__name__)

AT_ONCE: Final = 32  # redrives in progress; the rest are queued
OF_A_TENANT: Final = 4  # of these: a slow redrive may take days, and other tenants must not wait for it


class _RunningRedrive(Struct):
    """Redrive in progress; `skipped` counts the records that earlier lanes skipped, `known` the reported progress."""

    record: RedriveRecord
    redriver: Redriver
    skipped: int
    known: dict[PartitionKey, int]


class Redrives:
    """Redrives of a lane: call `poll` on every pass and `report` before every checkpoint."""

    def __init__(self, lane: LaneContext, reader: SignalReader) -> None:
        self._lane = lane
        self._reader = reader
        self._signals = lane.cell.topics["signals"].name
        self._waiting: dict[str, RedriveRecord] = {}
        self._running: dict[str, _RunningRedrive] = {}
        lane.table.on_change(self._changed)

    def poll(self, now_s: float) -> None:
        """Start queued redrives and return as many messages as the rates allow."""
        if self._waiting and self._reader.at_end:
            self._begin()
        for redrive in self._running.values():
            if redrive.record.state == "running":
                redrive.redriver.poll(now_s)

    def report(self) -> None:
        """Report the progress that the ledger already knows; close the redrives that are complete or aborted."""
        for name, redrive in list(self._running.items()):
            aborted = redrive.record.state == "aborted"
            ended = not redrive.redriver.job.in_flight if aborted else redrive.redriver.is_over
            known = redrive.redriver.reached()
            if known is not None:
                redrive.known = known
                ended = ended and known == redrive.redriver.job.reached()
                self._report_progress(redrive, done=ended)
                if ended:
                    self._end(name)

    def close(self) -> None:
        """Close the Kafka consumers."""
        for redrive in self._running.values():
            redrive.redriver.close()

    @property
    def is_busy(self) -> bool:
        """True while a redrive is in progress."""
        return bool(self._running)

    def _changed(self, record: object) -> None:
        if not isinstance(record, RedriveRecord) or record.cell != self._lane.identity.cell:
            return
        redrive = self._running.get(record.move)
        if redrive is None:
            self._waiting[record.move] = record
        elif record.state == "aborted":
            redrive.record = record
            redrive.redriver.report_again()

    def _begin(self) -> None:
        """Start queued redrives in the order they came, at most one per destination at a time."""
        for name, record in list(self._waiting.items()):
            before = self._reader.state.progress.get(name)
            if before is not None and before.done:
                del self._waiting[name]
            elif record.state == "aborted":
                del self._waiting[name]
                self._refuse(record, before, "")
            elif self._may_start(record):
                del self._waiting[name]
                self._start(record, before)

    def _may_start(self, record: RedriveRecord) -> bool:
        running = [redrive.record for redrive in self._running.values()]
        if any((other.pipe, other.destination) == (record.pipe, record.destination) for other in running):
            return False
        tenant = self._tenant_of(record)
        of_tenant = sum(self._tenant_of(other) == tenant for other in running)
        return len(running) < AT_ONCE and of_tenant < OF_A_TENANT

    def _tenant_of(self, record: RedriveRecord) -> str:
        pipe = self._lane.table.pipe(record.pipe)
        return pipe.tenant if pipe is not None else record.pipe

    def _start(self, record: RedriveRecord, before: RedriveProgress | None) -> None:
        try:
            wanted = decode_offsets(record.offsets)
        except ValueError as exc:
            self._refuse(record, before, f"its offsets cannot be decoded: {exc}")
            return
        reached = before.reached if before else {}
        job = RedriveJob(
            DestinationKey(record.pipe, record.destination),
            record.what,
            dict(sorted(wanted.items())),
            {parse_place(place): offset for place, offset in reached.items()},
            through=record.through,
        )
        redriver = Redriver(self._lane, job, record.rate_per_s)
        self._running[record.move] = _RunningRedrive(record, redriver, before.skipped if before else 0, {})
        log.info("%s of pipe=%s destination=%s: %d messages", record.what, *job.name, job.total)

    def _refuse(self, record: RedriveRecord, before: RedriveProgress | None, why: str) -> None:
        before = before or RedriveProgress(REDRIVES_VERSION, record.move, 0, 0, 0, False, 0, {})
        self._send(msgspec.structs.replace(before, done=True, error=why))

    def _report_progress(self, redrive: _RunningRedrive, *, done: bool) -> None:
        """Report the counts of records below the offsets reached; a restart reads the rest again."""
        job = redrive.redriver.job
        skipped = redrive.skipped + job.skipped_below(redrive.known)
        moved = job.done_below(redrive.known) - skipped
        reached = {format_place(place): offset for place, offset in redrive.known.items()}
        self._send(RedriveProgress(REDRIVES_VERSION, redrive.record.move, moved, skipped, job.total, done, 0, reached))

    def _send(self, progress: RedriveProgress) -> None:
        encoded = encode_progress(msgspec.structs.replace(progress, at_us=time.time_ns() // 1_000))
        self._lane.producer.send(self._signals, None, key=redrive_key(progress.move).encode(), value=encoded)

    def _end(self, name: str) -> None:
        redrive = self._running.pop(name)
        redrive.redriver.close()
        log.info(
            "%s of pipe=%s destination=%s: finished",
            redrive.record.what,
            redrive.record.pipe,
            redrive.record.destination,
        )
