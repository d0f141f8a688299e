"""Explains why a pipe or a cell is slow, paused, not scaled or not deployable now, and when it is checked again.

Reads rows only, the same ones by which the controllers decide.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Final, get_args

from django.db.models import Q

from controlplane.interlocks import WORDS, CellState, ControllerName, clock, refusal_of
from controlplane.leases import cell_states
from dataplane.names import INGEST_GROUP
from mgmt.cells.queries.control import control_actions
from mgmt.cells.queries.overdue_tasks import OverdueTask, overdue_tasks
from mgmt.ledger.queries.bucket_range import span_until
from mgmt.ledger.queries.timing import Timing, timing
from mgmt.models import Admission, Cell, ControlAction, Destination, Pipe, PipeMigration, PipeRevision, ScaleGroup
from mgmt.patterns.queries import reported_findings

ACTIONS: Final = 5
SPAN: Final = "15m"


class UnknownError(Exception):
    """No pipe and no cell has this name or id."""


def explain(name: str, now: datetime) -> list[str]:
    """Return lines about the pipe or cell of that id, about ingest, or about the pipes of that name.

    Overdue tasks of the control plane come first. Raises UnknownError.
    """
    return [*map(_of_overdue, overdue_tasks(now)), *_about(name, now)]


def _of_overdue(overdue: OverdueTask) -> str:
    since = f" since {clock(overdue.since)}" if overdue.since else ""
    return f"task {overdue.task} has not run{since}: check Redis, beat and the workers"


def _about(name: str, now: datetime) -> list[str]:
    if Cell.with_ingest.filter(id=name).exists():
        return about_cell(name, now)
    pipes = list(Pipe.objects.filter(Q(id=name) | Q(name=name)).select_related("tenant").order_by("id"))
    if not pipes:
        raise UnknownError(f"{name!r} is neither a cell nor a pipe's id or name")
    return [line for pipe in pipes for line in about_pipe(pipe, now)]


def about_cell(cell: str, now: datetime) -> list[str]:
    """Return lines about the cell's verdict, the controllers that may change it, its groups and its last changes."""
    state = cell_states(now, [cell])[cell]
    groups = ScaleGroup.objects.filter(cell=cell).exclude(why="").order_by("id")
    done = [_of_action(row) for row in control_actions(cell=cell)[:ACTIONS]]
    return [*_of_state(state), *map(_of_group, groups), *done]


def about_pipe(pipe: Pipe, now: datetime) -> list[str]:
    """Return lines about the pipe's state, what it waits for, where its messages spend their time, and its cell."""
    lines = [f"pipe {pipe.name} ({pipe.id}) of {pipe.tenant.name} is {pipe.state}"]
    lines += [_of_migration(row) for row in pipe.relocations.filter(state__in=PipeMigration.UNDER_WAY)]
    lines += [_of_revision(row) for row in _current_revisions(pipe)]
    admission = Admission.objects.filter(pipe=pipe, ended_at=None).first()
    if admission is not None:
        lines.append(f"it is admitted gradually: {admission.reason or f'{admission.share} % of its keys are admitted'}")
    lines += [
        _of_destination(row) for row in pipe.destinations.exclude(state__in=["active", "removed"]).order_by("name")
    ]
    lines += [f"unusual since {clock(found.since)}: {found.words}" for found in reported_findings([pipe.id])]
    lines.append(_of_time(timing(pipe_id=pipe.id, span=span_until(SPAN, now))))
    return [*lines, *(about_cell(pipe.cell_id, now) if pipe.cell_id else ["it waits for its placement on a cell"])]


def _of_migration(row: PipeMigration) -> str:
    where = f"from cell {row.source_id} to {row.target_id}"
    if row.switched_at is None:
        return f"migration {where} requested at {clock(row.asked_at)}: {row.says or 'waiting for its turn'}"
    waits = ", where they wait so that the order of each key is kept" if row.held_at else ""
    new = f"new events are sent to {row.target_id} since {clock(row.switched_at)}{waits}"
    drains = f"{new}; {row.source_id} finishes its backlog"
    return f"it is being migrated {where}: {drains}{f': {row.says}' if row.says else ''}"


def _current_revisions(pipe: Pipe) -> Iterable[PipeRevision]:
    """Return the live revision and those after it, which say what they wait for; without a live one, the newest."""
    rows = list(pipe.revisions.exclude(state=PipeRevision.State.RETIRED).defer("spec").order_by("number"))
    live = [row.number for row in rows if row.state == PipeRevision.State.LIVE]
    return [row for row in rows if row.number >= live[0]] if live else rows[-1:]


def _of_revision(row: PipeRevision) -> str:
    waits = f": {row.state_reason}" if row.state_reason and row.state != PipeRevision.State.LIVE else ""
    next_check = "; the Provisioner checks again every second" if row.state in ("requested", "ramping") else ""
    return f"revision {row.number} is {row.state}{waits}{next_check}"


def _of_destination(row: Destination) -> str:
    why = f": {row.state_reason or row.state_cause}" if row.state_reason or row.state_cause else ""
    return f"destination {row.name} is {row.state} since {clock(row.state_since)}{why}; its messages are held"


def _of_time(found: Timing) -> str:
    if found.end_to_end_us is None:
        return "nothing was delivered in the last 15 minutes"
    slowest = max(found.pie, key=lambda one: one.share, default=None)
    most = f"; largest share of the time since ingest: {slowest.name} ({slowest.share:.0%})" if slowest else ""
    return f"end to end p95 of the last 15 minutes: {found.end_to_end_us / 1000:.1f} ms{most}"


def _of_state(state: CellState) -> list[str]:
    verdict = state.verdict
    if state.cell == INGEST_GROUP:
        lines = []
    elif verdict is None:
        lines = [f"cell {state.cell} has no verdict yet"]
    else:
        reasons = f": {'; '.join(verdict.reasons)}" if verdict.reasons else ""
        lines = [f"cell {state.cell} is {verdict.state} since {clock(verdict.since)}{reasons}"]
    return [*lines, *(_of_controller(controller, state) for controller in get_args(ControllerName))]


def _of_controller(controller: ControllerName, state: CellState) -> str:
    refusal = refusal_of(controller, state)
    if refusal is None:
        return f"{WORDS[controller]}: allowed now"
    protects = "" if refusal_of(controller, state, protective=True) else "; protective actions are allowed"
    return f"{WORDS[controller]}: not now: {refusal.why}; retried {refusal.again}{protects}"


def _of_group(row: ScaleGroup) -> str:
    return f"{row.words}, {row.minimum} to {row.maximum} of them: {row.why}"


def _of_action(row: ControlAction) -> str:
    who = row.author.username if row.author else row.get_controller_display()
    return f"{clock(row.at)} {who}: {row.action} {row.outcome}{f': {row.reason}' if row.reason else ''}"
