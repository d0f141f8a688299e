"""Dependencies of pipes that this lane lacks: a plan, the salt of hash steps, a look-up table, a topic.

A missing dependency may arrive soon, so messages first wait, unsettled, for WAIT_S. Then they are held before the
steps; otherwise one pipe would fill the ack window of a partition that it shares with others. The lane reports this on
`signals`: the control plane pauses the pipe, and resumes it when no lane has reported a missing dependency for a while.
"""

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from typing import Final

from dataplane.causes import Cause
from dataplane.process.admission import ProcessAdmission
from dataplane.process.flows import FlowGroup
from dataplane.process.item import ProcessItem, offset_of
from dataplane.runtime.lanes.context import MAX_WINDOW_BYTES, LaneContext
from dataplane.tables.records import PipeRecord
from dataplane.tables.signals import SIGNAL_VERSION, DestinationSignal, encode_signal, signal_key

WAIT_S: Final = 10.0
CHECK_S: Final = 1.0
REPORT_S: Final = 10.0  # well below the time after which the control plane takes silence for "nothing is missing"


class Dependencies:
    """Decides which pipes this lane holds because a dependency is missing, and when it admits them again.

    missing: returns the missing dependency of a pipe's revision on this host, as text for the owner; "" if it can run
    held:    the pipes that this lane holds
    """

    def __init__(self, lane: LaneContext, admission: ProcessAdmission, missing: Callable[[str, int], str]) -> None:
        self._lane, self._admission, self._missing = lane, admission, missing
        self._signals = lane.cell.topics["signals"].name
        self._since: dict[str, float] = {}  # when messages of a pipe began to wait
        self._revisions: dict[str, int] = {}  # by held pipe: a revision with a missing dependency
        self._reported: dict[str, tuple[float, int]] = {}  # by pipe: time, and version of the pipe's record
        self._unchecked: set[str] = set()  # pipes paused for this cause, perhaps because of this lane
        self._due_s = 0.0
        lane.table.on_change(self._changed)

    @property
    def held(self) -> Collection[str]:
        """The pipes that this lane holds."""
        return self._revisions.keys()

    def overdue(self, waiting: Iterable[tuple[FlowGroup, list[ProcessItem]]], now_s: float) -> set[str]:
        """Return the pipes whose waiting messages must be held now; record when the others began to wait."""
        since, crowded = self._since, self._crowded(waiting)
        self._since = {group.pipe: since.get(group.pipe, now_s) for group, _ in waiting}
        due = set()
        for group, _ in waiting:
            pipe = group.pipe
            if pipe in self._revisions or group.partition in crowded or now_s - self._since[pipe] >= WAIT_S:
                due.add(pipe)
                self._hold(pipe, group.revision, now_s)
        return due

    def poll(self, now_s: float) -> None:
        """Check once a second if missing dependencies have arrived; repeat the report while they have not."""
        if now_s < self._due_s or not (self._revisions or self._unchecked):
            return
        self._due_s = now_s + CHECK_S
        for pipe in self._unchecked:
            if self._why(pipe):
                self._hold(pipe, 0, now_s)
        self._unchecked.clear()
        for pipe in list(self._revisions):
            if not (why := self._why(pipe)):
                self._take_in(pipe)
            elif self._reported[pipe][1] != self._version(pipe) or now_s - self._reported[pipe][0] >= REPORT_S:
                self._report(pipe, why, now_s)

    def _crowded(self, waiting: Iterable[tuple[FlowGroup, list[ProcessItem]]]) -> set[int]:
        """Return the partitions in which waiting messages fill, or block, half of the ack window."""
        counts: Counter[int] = Counter()
        firsts: dict[int, int] = {}
        for group, items in waiting:
            counts[group.partition] += len(items)
            first = offset_of(items[0])
            firsts[group.partition] = min(firsts.get(group.partition, first), first)
        half, crowded = self._lane.settings.max_unsettled // 2, set()
        for partition, first in firsts.items():
            window = self._lane.windows.get(partition)
            is_filling = window is not None and (window.span >= half or window.bytes >= MAX_WINDOW_BYTES // 2)
            if counts[partition] >= half or (window is not None and is_filling and window.prefix >= first):
                crowded.add(partition)
        return crowded

    def _hold(self, pipe: str, revision: int, now_s: float) -> None:
        if pipe in self._revisions:
            return
        self._revisions[pipe] = revision
        self._admission.close(pipe)
        why = self._why(pipe) or self._missing(pipe, revision)
        self._lane.tally.add(f"held: pipe={pipe} {why}")
        self._report(pipe, why, now_s)

    def _take_in(self, pipe: str) -> None:
        """Stop holding a pipe and report that. Its held messages return first (dataplane.process.gate)."""
        del self._revisions[pipe], self._reported[pipe]
        self._admission.reopen(pipe)
        self._lane.tally.add(f"no longer held: pipe={pipe}")
        self._send(pipe, "")

    def _why(self, pipe: str) -> str:
        """Return the missing dependency of the pipe's current revisions, which will run held messages; "" if none."""
        record = self._lane.table.pipe(pipe)
        weights = [revision for revision, _ in record.weights] if record is not None else []
        revisions = weights or [self._revisions.get(pipe, 0)]
        return next(filter(None, (self._missing(pipe, revision) for revision in revisions)), "")

    def _report(self, pipe: str, why: str, now_s: float) -> None:
        self._reported[pipe] = (now_s, self._version(pipe))
        self._send(pipe, why)

    def _send(self, pipe: str, why: str) -> None:
        signal = DestinationSignal(
            SIGNAL_VERSION,
            self._lane.identity.cell,
            self._lane.identity.writer,
            pipe,
            "",
            time.time_ns() // 1_000,
            breaker="open" if why else "closed",
            suspended=Cause.DEPENDENCY_MISSING if why else "",
            reason=why,
            of_version=self._version(pipe),
        )
        self._lane.producer.send(self._signals, None, key=signal_key(signal).encode(), value=encode_signal(signal))

    def _version(self, pipe: str) -> int:
        record = self._lane.table.pipe(pipe)
        return record.version if record is not None else 0

    def _changed(self, record: object) -> None:
        if isinstance(record, PipeRecord) and record.state == "paused" and record.cause == Cause.DEPENDENCY_MISSING:
            self._unchecked.add(record.pipe)
