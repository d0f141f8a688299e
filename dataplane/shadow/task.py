"""Comparison of a job's events, in a task: run the draft, compare with what was sent, and run the live plan if needed.

Steps with state (dedup, windows, taps, sequences) are not run.
"""

import time
from collections.abc import Iterable
from typing import Final
from zlib import crc32

from dataplane.ledger.meta import MessageMeta, decode_meta
from dataplane.plan import CompiledPlan
from dataplane.plan.through import Passage, pass_through
from dataplane.process.budget import budget_check
from dataplane.shadow.comparison import (
    ChildDestination,
    ComparedDestinations,
    ComparedUnit,
    accepts,
    compare_units,
)
from dataplane.shadow.job import PartComparison, ShadowJob
from dataplane.shadow.reading import IngestedUnit, Passed, SentUnit
from dataplane.shadow.result import add_fields
from dataplane.shadow.samples import field_names, has_same_body, sample_of
from dataplane.stages.enrich import TableRows
from dataplane.tables.shadows import MOST_SAMPLES

COST_EVERY: Final = 20  # one event of so many is timed
COMPARE_S: Final = 20.0  # within which a task compares its events; one event may take 4 s of CPU


class ShadowTask:
    """Comparison of some events of a job.

    draft, live: compiled from the job's specs
    rows:        the tenant's look-up tables
    """

    def __init__(self, job: ShadowJob, draft: CompiledPlan, live: CompiledPlan, rows: TableRows) -> None:
        self._job, self._draft, self._live, self._rows = job, draft, live, rows
        self._destinations = ComparedDestinations(job.record.spec, job.live)
        self._kept: dict[tuple[str, str], list[tuple[int, ComparedUnit]]] = {}
        self.result = PartComparison()

    def run(self, groups: Iterable[tuple[int, Iterable[Passed]]]) -> PartComparison:
        """Compare the events and return the counts. `groups`: what was read of each position."""
        began_s = time.monotonic()
        for position, records in groups:
            if self.result.events and time.monotonic() >= began_s + COMPARE_S:
                self.result.is_large = True
                return self.result
            event: IngestedUnit | None = None
            sent: dict[ChildDestination, bytes] = {}
            for record in records:
                if isinstance(record, IngestedUnit):
                    event = record
                elif isinstance(record, SentUnit) and self._destinations.has(record.destination):
                    sent.setdefault((record.child, record.destination), record.body)  # a unit sent twice counts once
            if event is not None:
                self._compare(position, decode_meta(event.meta), event.body, sent)
        self._take_samples()
        self.result.took_s = time.monotonic() - began_s
        return self.result

    def _compare(self, position: int, meta: MessageMeta, body: bytes, sent: dict[ChildDestination, bytes]) -> None:
        result = self.result
        result.events += 1
        is_timed = crc32(meta.id.encode()) % COST_EVERY == 0
        began_ns = time.thread_time_ns()
        draft = self._passage(self._draft, meta, body) if accepts(self._job.record.spec, meta.source) else None
        shadow_ns = time.thread_time_ns() - began_ns
        live: Passage | None = None
        if is_timed and draft is not None:
            began_ns = time.thread_time_ns()
            live = self._passage(self._live, meta, body)
            result.live_cpu_us += (time.thread_time_ns() - began_ns) // 1_000
            result.shadow_cpu_us += shadow_ns // 1_000
            result.cost_events += 1

        def would_send() -> set[ChildDestination]:
            passage = live if live is not None else self._passage(self._live, meta, body)
            return {(one.child, one.destination) for one, _ in passage.sent}

        for unit in compare_units(draft, self._destinations.chosen, sent, would_send, has_same_body):
            self._count(position, unit)

    def _passage(self, plan: CompiledPlan, meta: MessageMeta, body: bytes) -> Passage:
        """Run a plan for one event, within the CPU time that a process lane gives it."""
        return pass_through(plan, self._destinations.chosen, meta, body, self._rows, check=budget_check(plan))

    def _count(self, position: int, unit: ComparedUnit) -> None:
        result, name = self.result, unit.destination
        units = result.units.setdefault(name, {})
        units[unit.kind] = units.get(unit.kind, 0) + 1
        if unit.kind == "equal":
            return
        if unit.kind == "different":
            add_fields(result.fields.setdefault(name, {}), dict.fromkeys(field_names(unit, self._job.masks), 1))
        if unit.is_rejected:
            result.rejected[unit.reason] = result.rejected.get(unit.reason, 0) + 1
        kept = self._kept.setdefault((unit.kind, name), [])
        kept.append((position, unit))
        if len(kept) > MOST_SAMPLES:  # drop the oldest: events arrive in any order
            kept.remove(min(kept, key=lambda one: one[0]))

    def _take_samples(self) -> None:
        kept = [one for units in self._kept.values() for one in units]
        for position, unit in sorted(kept, key=lambda one: one[0]):
            self.result.samples.append(sample_of(unit, position, self._job.masks))
