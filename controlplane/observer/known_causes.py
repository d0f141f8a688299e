"""Known causes of unusual patterns, from rows: changes of cells, ramps, pauses, and new schemas."""

from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final, cast

from django.db.models import Q
from msgspec import Struct

from mgmt.models import CellVerdict, ControlAction, Lease, Pipe, PipeRevision, Ramp, SourceSchema
from mgmt.patterns.judge import KnownChange, UnusualSignal

SETTLES: Final = timedelta(minutes=5)  # the effects of a change are over by this time after it
SCHEMA_EXPLAINS: Final = timedelta(days=1)  # events of a new schema are usual after this time
_CHANGES: Final[Mapping[str, str]] = {"deploy": "a release was deployed on", "scale": "lanes were changed on"}
Causes = dict[KnownChange, str]


class KnownCauses(Struct, frozen=True):
    """Causes that were present during a block, each in words.

    reporting: cells whose reports cover the whole block
    cells:     causes by cell
    ramps:     causes by pipe
    schemas:   explanations of changed fields, by pipe and source
    revisions: pipes whose live revision changed
    """

    reporting: frozenset[str]
    cells: Mapping[str, Causes]
    ramps: Mapping[str, Causes]
    schemas: Mapping[str, Mapping[str, str]]
    revisions: frozenset[str]

    def silenced(self, pipe: Pipe, pattern: UnusualSignal) -> str:
        """Return what explains the pattern at this pipe, in words; "" if nothing does."""
        return next((words for cause, words in self._of(pipe).items() if cause in pattern.caused_by), "")

    def is_changing(self, pipe: Pipe) -> bool:
        """Return True if the pipe or its cell is being changed, or has just been."""
        return bool(self._of(pipe)) or pipe.id in self.revisions

    def _of(self, pipe: Pipe) -> Causes:
        paused: Causes = {"pause": "while the pipe is paused"} if pipe.state == Pipe.State.PAUSED else {}
        return self.cells.get(pipe.cell_id or "", {}) | self.ramps.get(pipe.id, {}) | paused


def known_causes(start: datetime, end: datetime) -> KnownCauses:
    """Return the known causes from `start` to `end`. Six queries."""
    verdicts = list(CellVerdict.objects.all())
    return KnownCauses(
        reporting=frozenset(row.cell_id for row in verdicts if _was_reporting(row, start, end)),
        cells=_of_cells(verdicts, start, end),
        ramps=_ramps(start, end),
        schemas=_schemas(start, end),
        revisions=frozenset(
            PipeRevision.objects.filter(live_at__gt=start - SETTLES, live_at__lte=end).values_list("pipe_id", flat=True)
        ),
    )


def _was_reporting(row: CellVerdict, start: datetime, end: datetime) -> bool:
    """Return True if the reports of the cell cover the time from `start` to `end`.

    A cell that left unknown after `start` may still lack facts of that time. So may one without a verdict since `end`.
    """
    known = row.state != CellVerdict.State.UNKNOWN and row.at >= end
    return known and (row.since <= start or row.state == CellVerdict.State.UNSTABLE)


def _of_cells(verdicts: list[CellVerdict], start: datetime, end: datetime) -> Mapping[str, Causes]:
    found: dict[str, Causes] = defaultdict(dict)
    since = start - SETTLES
    changes = ControlAction.objects.filter(
        at__gte=since, at__lte=end, controller__in=_CHANGES, cell__isnull=False, outcome=ControlAction.Outcome.DONE
    )
    leases = Lease.objects.filter(taken_at__lte=end, until__gt=start, holder__in=_CHANGES)
    for cell, controller in [*changes.values_list("cell", "controller"), *leases.values_list("cell", "holder")]:
        found[str(cell)][cast(KnownChange, controller)] = f"while {_CHANGES[controller]} cell {cell}"
    for row in verdicts:
        if row.state == CellVerdict.State.UNSTABLE:
            found[row.cell_id]["unstable"] = f"while cell {row.cell_id} is unstable"
    return found


def _ramps(start: datetime, end: datetime) -> Mapping[str, Causes]:
    under_way = Ramp.objects.filter(Q(ended_at=None) | Q(ended_at__gt=start - SETTLES), began_at__lte=end)
    rows = under_way.values_list("revision__pipe_id", "revision__number")
    return {
        pipe: {"ramp": f"during the ramp of revision {number}, which compares both revisions"} for pipe, number in rows
    }


def _schemas(start: datetime, end: datetime) -> Mapping[str, Mapping[str, str]]:
    """Return the schemas registered recently: events may differ after each."""
    found: dict[str, dict[str, str]] = defaultdict(dict)
    rows = SourceSchema.objects.filter(created_at__gt=start - SCHEMA_EXPLAINS, created_at__lte=end).order_by("number")
    for pipe, source, number in rows.values_list("source__pipe_id", "source__name", "number"):
        found[pipe][source] = f"after schema {number} of source {source} was registered"
    return found
