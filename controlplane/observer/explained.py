"""What stands in the rows that explains unusual patterns of pipes: changes of their cells, ramps and pauses."""

from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final, cast

from django.db.models import Q
from msgspec import Struct

from mgmt.models import ControlAction, Lease, Pipe, Ramp, SourceSchema, Verdict
from mgmt.patterns.judge import Cause, Pattern

SETTLES: Final = timedelta(minutes=5)  # what a change brings with it is over so long after it
SCHEMA_TELLS: Final = timedelta(days=1)  # what comes for so long is usual by then
_CHANGES: Final[Mapping[str, str]] = {"deploy": "a release was deployed on", "scale": "lanes were changed on"}
Causes = dict[Cause, str]


class Circumstances(Struct, frozen=True):
    """What was the matter during a block, each cause in words.

    heard:   cells of which all of it was heard
    schemas: what explains other fields, by pipe and source
    """

    heard: frozenset[str]
    cells: Mapping[str, Causes]
    ramps: Mapping[str, Causes]
    schemas: Mapping[str, Mapping[str, str]]

    def silenced(self, pipe: Pipe, pattern: Pattern) -> str:
        """What explains the pattern at this pipe; "" if nothing does."""
        paused: Causes = {"pause": "while the pipe is paused"} if pipe.state == Pipe.State.PAUSED else {}
        causes = self.cells.get(pipe.cell_id or "", {}) | self.ramps.get(pipe.id, {}) | paused
        return next((words for cause, words in causes.items() if cause in pattern.caused_by), "")


def circumstances(start: datetime, end: datetime) -> Circumstances:
    """Of the time from `start` to `end`: five queries."""
    verdicts = list(Verdict.objects.all())
    return Circumstances(
        heard=frozenset(row.cell_id for row in verdicts if _was_heard(row, start, end)),
        cells=_of_cells(verdicts, start, end),
        ramps=_ramps(start, end),
        schemas=_schemas(start, end),
    )


def _was_heard(row: Verdict, start: datetime, end: datetime) -> bool:
    """A cell that came back from unknown after `start` may still owe facts of that time; so may a judge that stands."""
    known = row.state != Verdict.State.UNKNOWN and row.at >= end
    return known and (row.since <= start or row.state == Verdict.State.UNSTABLE)


def _of_cells(verdicts: list[Verdict], start: datetime, end: datetime) -> Mapping[str, Causes]:
    found: dict[str, Causes] = defaultdict(dict)
    since = start - SETTLES
    deeds = ControlAction.objects.filter(
        at__gte=since, at__lte=end, controller__in=_CHANGES, cell__isnull=False, outcome="done"
    )
    leases = Lease.objects.filter(taken_at__lte=end, until__gt=start, holder__in=_CHANGES)
    for cell, controller in [*deeds.values_list("cell", "controller"), *leases.values_list("cell", "holder")]:
        found[str(cell)][cast(Cause, controller)] = f"while {_CHANGES[controller]} cell {cell}"
    for row in verdicts:
        if row.state == Verdict.State.UNSTABLE:
            found[row.cell_id]["unstable"] = f"while cell {row.cell_id} is unstable"
    return found


def _ramps(start: datetime, end: datetime) -> Mapping[str, Causes]:
    under_way = Ramp.objects.filter(Q(ended_at=None) | Q(ended_at__gt=start - SETTLES), began_at__lte=end)
    rows = under_way.values_list("revision__pipe_id", "revision__number")
    return {pipe: {"ramp": f"while revision {number} ramped, which its own gate watches"} for pipe, number in rows}


def _schemas(start: datetime, end: datetime) -> Mapping[str, Mapping[str, str]]:
    """Who registers a schema says that other events will come."""
    found: dict[str, dict[str, str]] = defaultdict(dict)
    rows = SourceSchema.objects.filter(created_at__gt=start - SCHEMA_TELLS, created_at__lte=end).order_by("number")
    for pipe, source, number in rows.values_list("source__pipe_id", "source__name", "number"):
        found[pipe][source] = f"after schema {number} of source {source} was registered"
    return found
