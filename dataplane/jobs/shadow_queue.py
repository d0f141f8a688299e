"""Shadow runs of a cell: choose the events of each job, and store its counts with the offsets it reached.

It does not know Spark: `ShadowEffects` runs a job. A job whose progress is not stored is repeated as a whole, and
counts once.
"""

import logging
import time
from collections.abc import Callable
from typing import Any, ClassVar, Final, NamedTuple

import msgspec
from msgspec import Struct, field

from dataplane.jobs.ledger_reporter import QueryLedgerReporter
from dataplane.jobs.run_queue import RunQueue, RunState, now_us
from dataplane.plan.masked_fields import MaskedField
from dataplane.process.plans import PlanCache
from dataplane.replay.decisions import crash_reason
from dataplane.replay.offsets import MARGIN_US, offsets_at, resolve, watermarks
from dataplane.replay.progress_log import read_shadow_progress
from dataplane.replay.ranges import MOST_TASKS, remaining
from dataplane.replay.turns import RunStep, WaitingRun
from dataplane.shadow.decisions import (
    DEDUP_US,
    FIRST_RECORDS,
    IDLE_S,
    ShadowContext,
    compared_until,
    next_shadow_step,
    next_size,
    size_after,
    size_after_failure,
    with_ends,
)
from dataplane.shadow.job import PartComparison, PartRead, ShadowJob
from dataplane.shadow.offsets import deleted_part, incomplete_part, sent_range, stored_ms
from dataplane.shadow.plans import NO_NEEDS, PlanNeeds, masks_in_bodies, plan_needs
from dataplane.shadow.result import first_shadow_progress, fitted, with_job, without
from dataplane.shadow.slices import next_slice, size_of
from dataplane.tables.control import ControlTable
from dataplane.tables.records import CellRecord, PlanRecord, ShadowRecord
from dataplane.tables.redrives import format_place
from dataplane.tables.run_notes import error_text, expiry_note
from dataplane.tables.shadows import (
    SHADOW_VERSION,
    ShadowProgress,
    encode_shadow_progress,
    shadow_progress_key,
)

log = logging.getLogger("shadows")

KIND: Final = "shadow"
TABLES_S: Final = 5.0  # then plans that lack look-up tables try again
QUIET_US: Final = 10_000_000  # the progress of a run without new events is stored again after this time
FAR_US: Final = (1 << 61) - 1  # time without an end, to which a margin can be added; microseconds since 1970
_NOT_SENT_RETAINED: Final = "are not compared: what was sent of them is no longer retained"

_State = RunState[ShadowRecord, ShadowProgress]


class ShadowEffects(NamedTuple):
    """Access to Spark and to the lanes.

    run_job:   runs a job with so many tasks at the same time
    committed: returns the offsets that process lanes have committed, by partition of ingest
    """

    run_job: Callable[[ShadowJob, int], list[PartRead | PartComparison]]
    committed: Callable[[CellRecord], dict[int, int]]


class JobFailedError(Exception):
    """A job did not count: a part of it failed."""


class ShadowPace(Struct):
    """Memory of a run that a new driver learns again.

    size:     records of the next job
    times_us: by partition, the ingest time of the last record that was read
    idle_us:  by partition, when the live revision had processed all records
    masks:    by destination, for the number of plans at which they were computed
    """

    size: int = FIRST_RECORDS
    times_us: dict[str, int] = field(default_factory=dict)
    idle_us: dict[str, int] = field(default_factory=dict)
    masks: tuple[int, dict[str, frozenset[MaskedField]]] = (0, {})


class ShadowQueue(RunQueue[ShadowRecord, ShadowProgress]):
    """Shadow runs of one cell. All take turns: one that follows live traffic never ends of its own accord."""

    kind: ClassVar[str] = KIND

    def __init__(
        self,
        table: ControlTable,
        fernet_keys: tuple[str, ...],
        reporter: QueryLedgerReporter,
        reader: Any,
        effects: ShadowEffects,
    ) -> None:
        """`reader`: consumer for assigned partitions, which reports the end of a partition."""
        super().__init__(table, reporter, reader)
        self._effects = effects
        self._salts = PlanCache(table, fernet_keys)
        self._known_needs: dict[str, PlanNeeds] = {}
        self._paces: dict[str, ShadowPace] = {}
        self._rest_until_s = 0.0  # half of the time is left to the lanes, however many runs there are

    def _read_progress(self, topic: str) -> dict[str, ShadowProgress]:
        return read_shadow_progress(self._reader, topic)

    def _no_progress(self, run: str) -> ShadowProgress:
        return ShadowProgress(SHADOW_VERSION, run, 0, {}, {})

    def _encoded(self, progress: ShadowProgress) -> tuple[str, bytes]:
        return shadow_progress_key(progress.shadow), encode_shadow_progress(progress)

    def _waiting(self, state: _State) -> WaitingRun:
        due_s = max(state.due_s, self._rest_until_s)
        return WaitingRun(state.id, state.id, state.record.version, due_s, state.last_s)

    def _next_step(self, cell: CellRecord, state: _State, slots: int) -> RunStep:
        record, table = state.record, self._table
        pipe, plan = table.pipe(record.pipe), table.plan(record.pipe, record.revision)
        needs = self._needs(record, plan) if plan is not None else NO_NEEDS
        has_salt = not needs.salt or self._salts.salt(record.pipe) is not None
        return next_shadow_step(record, state.progress, ShadowContext(cell, pipe, plan, needs.problem, has_salt, slots))

    def _resolve(self, cell: CellRecord, state: _State) -> None:
        record = state.record
        resolved = resolve(self._reader, cell.topics["ingest"], record.since_us, record.until_us or FAR_US)
        ranges = resolved.ranges
        if not record.until_us:  # the end is what process has committed, which each job asks for
            ranges = [one._replace(end=one.first) for one in ranges]
        error = expiry_note(resolved.retained_since_us)
        self._publish(cell, state, first_shadow_progress(record.shadow, ranges, now_us(), error))

    def _run(self, cell: CellRecord, state: _State, slots: int) -> None:
        """Run one job and store its counts, or skip events that cannot be compared, or wait for new ones."""
        if state.progress is None:
            raise ValueError(f"{state.id} has no range")
        began_s = time.monotonic()
        progress = self._with_new_ends(cell, state.record, state.progress)
        job = self._job(cell, state, progress)
        if isinstance(job, ShadowProgress):
            self._publish(cell, state, job)
        elif job is None:
            self._note_idle(cell, state, progress)
            state.due_s = time.monotonic() + IDLE_S
            state.failures = 0
        else:
            try:
                self._run_one(cell, state, progress, job, slots)
            finally:
                now_s = time.monotonic()
                self._rest_until_s = now_s + now_s - began_s

    # -- jobs ------------------------------------------------------------------------------------------------------

    def _with_new_ends(self, cell: CellRecord, record: ShadowRecord, progress: ShadowProgress) -> ShadowProgress:
        """Return the progress with the ends of a run that follows live traffic; note partitions without a backlog."""
        if record.until_us:
            return progress
        ingest, pace, at_us = cell.topics["ingest"], self._pace(record), now_us()
        committed = self._effects.committed(cell)
        for number, offset in committed.items():
            if offset >= watermarks(self._reader, ingest.name, number)[1]:
                pace.idle_us[format_place((ingest.name, number))] = at_us
        return msgspec.structs.replace(progress, ends=with_ends(progress, ingest.name, committed))

    def _job(self, cell: CellRecord, state: _State, progress: ShadowProgress) -> ShadowJob | ShadowProgress | None:
        """Return the next job; the progress without events that cannot be compared; None if there is nothing to do."""
        record, reader, ingest = state.record, self._reader, cell.topics["ingest"]
        left = remaining(progress)
        if not left:
            return None
        deleted = deleted_part(reader, left)
        if deleted.ranges:
            note = expiry_note(deleted.until_ms * 1_000)
            return without(progress, deleted.ranges, now_us(), error_text(progress.error, "", note))
        first_ms = min(stored_ms(reader, left))
        size = next_size(record, progress, self._pace(record).size)

        def firsts_at(time_ms: int) -> dict[int, int]:
            return offsets_at(reader, ingest, time_ms * 1_000)

        sliced = next_slice(left, size, firsts_at, first_ms, self._end_ms(record))
        if not sliced.ranges:
            return None
        sent = sent_range(reader, cell.topics["egress"], first_ms)
        if sent.complete_ms and (skipped := incomplete_part(reader, ingest, left, sent.complete_ms)):
            note = expiry_note(sent.complete_ms * 1_000, _NOT_SENT_RETAINED)
            return without(progress, skipped, now_us(), error_text(progress.error, "", note))
        plan, pipe = self._table.plan(record.pipe, record.revision), self._table.pipe(record.pipe)
        if plan is None or pipe is None:
            raise ValueError(f"{record.shadow} has no plan")
        salt = self._salts.salt(record.pipe) if self._needs(record, plan).salt else b""
        return ShadowJob(
            record,
            plan.spec,
            salt or b"",
            pipe.tenant,
            ingest.generation,
            sliced.ranges,
            sent.firsts,
            sliced.until_ms,
            self._masks(record),
        )

    def _end_ms(self, record: ShadowRecord) -> int:
        """Return the time before which events may be compared: the range's end, and what is not too new."""
        plan = self._table.plan(record.pipe, record.revision)
        has_dedup = plan is not None and self._needs(record, plan).dedup
        newest_us = now_us() - (DEDUP_US if has_dedup else 0)
        return min(newest_us, (record.until_us or FAR_US) + MARGIN_US) // 1_000 + 1

    def _run_one(self, cell: CellRecord, state: _State, progress: ShadowProgress, job: ShadowJob, slots: int) -> None:
        """Run a job and store its counts. Raises JobFailedError, after which a smaller job repeats it."""
        pace, records = self._pace(state.record), size_of(job.ranges)
        size = pace.size
        pace.size = size_after_failure(min(size, records))  # unless it succeeds
        results = self._effects.run_job(job, max(1, min(slots, MOST_TASKS)))
        has_crashed = any(one.crashed for one in results)
        if state.crashes_too_often(has_crashed=has_crashed, has_advanced=not has_crashed):
            self._end(cell, state, crash_reason(cell.topics["ingest"], [(one.place, one.first) for one in job.ranges]))
            return
        if errors := [one.error for one in results if one.error]:
            raise JobFailedError("; ".join(errors))
        reads = [one for one in results if isinstance(one, PartRead)]
        comparisons = [one for one in results if isinstance(one, PartComparison)]
        if waits := next((one.waits for one in comparisons if one.waits), ""):
            self._note(cell, state, waits)
            state.due_s, pace.size = time.monotonic() + TABLES_S, size
            return
        is_cut = any(one.is_cut for one in reads)
        if any(one.is_large for one in results) or (is_cut and records > FIRST_RECORDS):
            log.info("shadow %s: a job of %d records was too large", state.id, records)
            return
        if is_cut:
            log.warning("shadow %s: deliveries that are far behind their events count as not sent", state.id)
        for read in reads:
            pace.times_us |= {format_place(place): until_us for place, until_us in read.until_us.items()}
        after = with_job(progress, job.ranges, reads, comparisons, now_us())
        expired = expiry_note(max((one.expired_until_us for one in reads), default=0))
        after = msgspec.structs.replace(
            after,
            compared_until_us=compared_until(state.record, after, pace.times_us, pace.idle_us),
            error=error_text(progress.error, "", expired),
        )
        self._publish(cell, state, fitted(after))
        pace.size = size_after(
            size,
            records=records,
            events=sum(one.events for one in reads),
            size_bytes=sum(one.size_bytes for one in reads),
            took_s=max((one.events_s for one in reads), default=0.0)
            + max((one.took_s for one in comparisons), default=0.0),
            sent_s=max((one.sent_s for one in reads), default=0.0),
        )
        state.failures = 0

    def _note_idle(self, cell: CellRecord, state: _State, progress: ShadowProgress) -> None:
        """Store how far a run without new events is, and clear an error; seldom if nothing else has changed."""
        pace = self._pace(state.record)
        until_us = compared_until(state.record, progress, pace.times_us, pace.idle_us)
        after = msgspec.structs.replace(
            progress, at_us=now_us(), compared_until_us=until_us, error=error_text(progress.error, "")
        )
        before = state.progress
        if before is None or after.error != before.error or after.at_us > before.at_us + QUIET_US:
            self._publish(cell, state, after)

    # -- plans -----------------------------------------------------------------------------------------------------

    def _pace(self, record: ShadowRecord) -> ShadowPace:
        return self._paces.setdefault(record.shadow, ShadowPace())

    def _needs(self, record: ShadowRecord, plan: PlanRecord) -> PlanNeeds:
        if record.shadow not in self._known_needs:
            self._known_needs[record.shadow] = plan_needs(record.spec, plan.spec)
        return self._known_needs[record.shadow]

    def _masks(self, record: ShadowRecord) -> dict[str, frozenset[MaskedField]]:
        """Return by destination the values that any revision of the pipe masks, or the draft."""
        # A list: the driver's thread adds records meanwhile.
        plans = [one for one in list(self._table) if isinstance(one, PlanRecord) and one.pipe == record.pipe]
        pace = self._pace(record)
        if pace.masks[0] != len(plans):
            pace.masks = (len(plans), masks_in_bodies([record.spec, *(plan.spec for plan in plans)]))
        return pace.masks[1]
