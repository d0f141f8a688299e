"""Runs of one kind (replays, shadow runs) of a cell in their turns: decide the next step of each, and carry one out.

The progress of each is stored on the cell's `signals` topic; a driver that replaces a killed one continues from it.
"""

import logging
import random
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, ClassVar, Final, Generic, TypeVar

import msgspec
from confluent_kafka import KafkaException
from msgspec import Struct

from dataplane.jobs.driver_decisions import back_off_s
from dataplane.jobs.ledger_reporter import QueryLedgerReporter, ReportWriteError
from dataplane.replay.decisions import ABORTED, FAILED
from dataplane.replay.turns import RunStep, WaitingRun, behind_others, next_turn
from dataplane.tables.control import ControlTable
from dataplane.tables.records import CellRecord, ReplayRecord, ShadowRecord
from dataplane.tables.replays import ReplayProgress
from dataplane.tables.run_notes import error_text
from dataplane.tables.shadows import ShadowProgress

log = logging.getLogger("runs")

MOST_CRASHES: Final = 5  # jobs in a row in which the process of a task ended, each several times, and none advanced
_TURNS: Final = ("resolve", "run")
R = TypeVar("R", ReplayRecord, ShadowRecord)
P = TypeVar("P", ReplayProgress, ShadowProgress)


class RunState(Struct, Generic[R, P]):
    """One run of the cell.

    progress: the newest one that is stored
    due_s:    time before which it does nothing, for its rate or after an error; monotonic clock, as `last_s`
    last_s:   its last turn; 0 if it had none
    failures: errors since its last turn without one
    crashes:  jobs since the last progress in which the process of a task ended
    is_undecided: True after an error in the decision on its next step
    """

    id: str
    record: R
    progress: P | None
    due_s: float = 0.0
    last_s: float = 0.0
    failures: int = 0
    crashes: int = 0
    is_undecided: bool = False

    def crashes_too_often(self, *, has_crashed: bool, has_advanced: bool) -> bool:
        """Note the result of a job; return True if the run is to end because an event ends the processes of tasks."""
        self.crashes = 0 if has_advanced else self.crashes + has_crashed
        return self.crashes >= MOST_CRASHES


class RunQueue(ABC, Generic[R, P]):
    """Runs of one kind and cell, used in one thread. A turn is one step of one run; it blocks while its job runs."""

    kind: ClassVar[str]  # for logs

    def __init__(self, table: ControlTable, reporter: QueryLedgerReporter, reader: Any) -> None:
        """`reader`: consumer for assigned partitions, which reports the end of a partition."""
        self._table, self._reporter, self._reader = table, reporter, reader
        self._stored: dict[str, P] | None = None
        self._states: dict[str, RunState[R, P]] = {}
        # Time of the turn (monotonic), read once: a run that becomes due meanwhile has skipped the checks of a due run.
        self._now_s = 0.0

    def turn(self, cell: CellRecord, records: Mapping[str, R], slots: int) -> bool:
        """Take a step of the run whose turn it is; return False if none is due.

        records: of the cell's runs that have not ended, and of those that ended since the last turn
        slots:   task slots that a job may take

        Raises KafkaException if the stored progress cannot be read, before any run has begun.
        """
        if self._stored is None:
            self._stored = self._read_progress(cell.topics["signals"].name)
        self._now_s = time.monotonic()
        for run, record in records.items():
            known = self._states.setdefault(run, RunState(run, record, self._stored.get(run)))
            known.record = record
        steps = {}
        for run, state in self._states.items():
            if run not in self.ended and (step := self._step(cell, state, slots)):
                steps[run] = step
        due = [self._waiting(self._states[run]) for run, step in steps.items() if step.action in _TURNS]
        for run, first in behind_others(due).items():
            self._note(cell, self._states[run], f"waits for the {self.kind} {first}")
        turn = next_turn(due, self._now_s)
        if turn:
            self._take(cell, self._states[turn], steps[turn], slots)
        return bool(turn)

    @property
    def ended(self) -> set[str]:
        """The runs that have ended."""
        return {run for run, state in self._states.items() if state.progress is not None and state.progress.done}

    # -- kinds of runs ---------------------------------------------------------------------------------------------

    @abstractmethod
    def _read_progress(self, topic: str) -> dict[str, P]:
        """Return the stored progress of each run. Raises KafkaException."""

    @abstractmethod
    def _no_progress(self, run: str) -> P:
        """Return the progress of a run that has not begun."""

    @abstractmethod
    def _encoded(self, progress: P) -> tuple[str, bytes]:
        """Return the key and value of a progress record."""

    @abstractmethod
    def _waiting(self, state: RunState[R, P]) -> WaitingRun:
        """Return the place of a run among the others."""

    @abstractmethod
    def _next_step(self, cell: CellRecord, state: RunState[R, P], slots: int) -> RunStep:
        """Return what to do with a run that has not ended."""

    @abstractmethod
    def _resolve(self, cell: CellRecord, state: RunState[R, P]) -> None:
        """Store the range of offsets of a run. Raises any error of Kafka."""

    @abstractmethod
    def _run(self, cell: CellRecord, state: RunState[R, P], slots: int) -> None:
        """Run one job and store its progress. Raises any error of Kafka or Spark."""

    # -- steps -----------------------------------------------------------------------------------------------------

    def _step(self, cell: CellRecord, state: RunState[R, P], slots: int) -> RunStep | None:
        """Return the next step of a run; carry it out already if it is to wait or to end.

        Returns None after an error, such as a plan that this release cannot compile: the other runs continue.
        """
        if state.record.state == "ended" and state.is_undecided:
            self._end(cell, state, ABORTED)
            return None
        if state.is_undecided and state.due_s > self._now_s:
            return None
        try:
            step = self._next_step(cell, state, slots)
        except Exception as exc:
            log.exception("%s %s: no next step: %s", self.kind, state.id, str(exc)[:2_000])
            state.is_undecided = True
            self._back_off(cell, state)
            return None
        state.is_undecided = False
        if step.action == "wait" and step.reason:
            self._note(cell, state, step.reason)
        elif step.action == "end":
            self._end(cell, state, step.reason)
        return step

    def _take(self, cell: CellRecord, state: RunState[R, P], step: RunStep, slots: int) -> None:
        """Carry out a step; after an error the run waits, and its next turn repeats the step."""
        state.last_s = time.monotonic()
        try:
            if step.action == "resolve":
                self._resolve(cell, state)
            else:
                self._run(cell, state, slots)
        except Exception as exc:  # of Kafka or of Spark, whose exceptions have no common type
            log.warning("%s %s: %s", self.kind, state.id, str(exc)[:2_000])
            self._back_off(cell, state)

    def _back_off(self, cell: CellRecord, state: RunState[R, P]) -> None:
        state.due_s = max(state.due_s, time.monotonic() + back_off_s(state.failures, random.random()))  # noqa: S311
        state.failures += 1
        self._note(cell, state, FAILED)

    def _end(self, cell: CellRecord, state: RunState[R, P], reason: str) -> None:
        before = state.progress or self._no_progress(state.id)
        error = error_text(before.error, reason)
        after = msgspec.structs.replace(before, at_us=now_us(), done=True, error=error)
        with suppress(KafkaException, ReportWriteError):  # the next turn tries again
            self._publish(cell, state, after)
            log.info("%s %s ended: %s", self.kind, state.id, error or "complete")

    # -- progress --------------------------------------------------------------------------------------------------

    def _note(self, cell: CellRecord, state: RunState[R, P], reason: str) -> None:
        """Publish the reason why a run waits, unless its progress has it already."""
        before = state.progress or self._no_progress(state.id)
        error = error_text(before.error, reason)
        if error != before.error:
            with suppress(KafkaException, ReportWriteError):  # the next turn tries again
                self._publish(cell, state, msgspec.structs.replace(before, at_us=now_us(), error=error))

    def _publish(self, cell: CellRecord, state: RunState[R, P], progress: P) -> None:
        """Store a progress record. Raises ReportWriteError."""
        key, value = self._encoded(progress)
        self._reporter.produce(cell.topics["signals"].name, value, key=key)
        self._reporter.await_stored()
        state.progress = progress


def now_us() -> int:
    """Return the wall-clock time in microseconds since 1970."""
    return time.time_ns() // 1_000
