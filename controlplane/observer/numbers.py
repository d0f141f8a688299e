"""Watch the numeric fields of pipes: open, update and resolve the alert `numeric-drift`, one of a pipe at most."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Final

import msgspec

from controlplane.observer.columns import execute_in_columns
from dataplane.causes import Cause
from dataplane.ledger.number_sketch import NumberSketch
from mgmt.alerts.drift import DriftingField, drift_details
from mgmt.alerts.services.alerts import AlertReport, end_condition, open_alerts, report_condition
from mgmt.models import IgnoredField, NumberState, Pipe
from mgmt.patterns.blocks import DAY_H, IN_HOUR, start_of
from mgmt.patterns.numbers import NumberWatch, follow_numbers
from mgmt.patterns.shares import MOST_NUMBER_FIELDS, FieldShares

FORGET_BLOCKS: Final = DAY_H * IN_HOUR  # without a value for so long, a field is not watched any more
SILENT: Final = timedelta(days=1)
USUAL: Final = "the values are as they were at this hour on earlier days, or as they were yesterday"
NO_VALUES: Final = "the fields had no numbers for a day"
_STORE: Final = """
INSERT INTO mgmt_numberstate (pipe_id, source, block, watches)
SELECT * FROM unnest(%s::varchar[], %s::varchar[], %s::int[], %s::bytea[])
ON CONFLICT (pipe_id, source) DO UPDATE SET block = EXCLUDED.block, watches = EXCLUDED.watches
"""
_decoder = msgspec.msgpack.Decoder(dict[str, NumberWatch])
_encode = msgspec.msgpack.Encoder().encode
Watches = dict[str, NumberWatch]  # by path


class NumberWatcher:
    """Watcher of the numeric fields of a batch of pipes in one block. Two queries, one statement; more for an alert."""

    def __init__(self, pipes: Mapping[str, Pipe], number: int) -> None:
        self._pipes, self._number = pipes, number
        self._watches: dict[str, dict[str, Watches]] = defaultdict(dict)
        for row in NumberState.objects.filter(pipe_id__in=pipes):
            self._watches[row.pipe_id][row.source] = _decoder.decode(bytes(row.watches))
        ignored = IgnoredField.objects.filter(pipe__in=pipes).values_list("pipe_id", "source", "path")
        self._ignored = set(ignored)
        self._told = {pipe for pipe in pipes if self._drifting(pipe)}
        self._judged: set[str] = set()
        self._changed: set[tuple[str, str]] = set()

    def watch(
        self,
        pipe: str,
        source: str,
        block: Mapping[str, NumberSketch],
        known: Mapping[int, FieldShares],
        *,
        is_quiet: bool,
    ) -> None:
        """Judge the numbers of one source's block. `known`: the compared hours."""
        watches = self._watches[pipe].get(source, {})
        kept = {path: one for path, one in watches.items() if self._number - one.seen < FORGET_BLOCKS}
        for path, values in block.items():
            if path not in kept and len(kept) == MOST_NUMBER_FIELDS:
                continue
            hours = {hour: shares.numbers[path] for hour, shares in known.items() if path in shares.numbers}
            before = kept.get(path, NumberWatch())
            kept[path], judged = follow_numbers(before, self._number, values, hours, is_quiet=is_quiet)
            if judged:
                self._judged.add(pipe)
        if kept != watches:
            self._watches[pipe][source] = kept
            self._changed.add((pipe, source))

    def store(self, now: datetime) -> None:
        """Store the states, and open, update or resolve the alerts of the pipes that were judged."""
        changed = sorted(self._changed)
        execute_in_columns(
            _STORE,
            [(pipe, source, self._number, _encode(self._watches[pipe][source])) for pipe, source in changed],
        )
        for pipe in sorted(self._judged | {pipe for pipe, _ in changed} & self._told):
            if drifting := self._drifting(pipe):
                self._report(pipe, drifting, now)
            elif pipe in self._told:
                _end(pipe, USUAL, now)

    def _report(self, pipe: str, drifting: Collection[DriftingField], now: datetime) -> None:
        details = drift_details(drifting)
        report_condition(report=AlertReport(pipe, "", Cause.NUMERIC_DRIFT, len(drifting), details, {}), now=now)

    def _drifting(self, pipe: str) -> list[DriftingField]:
        """Return the reported fields that are not ignored."""
        return [
            DriftingField(source, path, start_of(watch.streak.since), drift)
            for source, watches in self._watches.get(pipe, {}).items()
            for path, watch in watches.items()
            if watch.streak and (drift := watch.told) and (pipe, source, path) not in self._ignored
        ]


def end_silent_drifts(now: datetime) -> int:
    """Resolve the alerts whose fields were not judged for a day, such as those of a pipe that gets no events."""
    rows = open_alerts().filter(cause=Cause.NUMERIC_DRIFT, last_at__lt=now - SILENT)
    return sum(_end(pipe, NO_VALUES, now) for pipe in rows.values_list("pipe_id", flat=True))


def _end(pipe: str, resolution: str, now: datetime) -> int:
    return end_condition(pipe_id=pipe, destination="", cause=Cause.NUMERIC_DRIFT, resolution=resolution, now=now)
