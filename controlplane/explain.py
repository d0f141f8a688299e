"""Why a pipe or a cell is slow, paused, not scaled or not deployable now, in words, and when it is looked at again.

Reads rows only, and says what the controllers themselves go by.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Final, get_args

from django.db.models import Q

from controlplane.interlocks import WORDS, CellState, Controller, clock, why_not
from controlplane.leases import cell_states
from dataplane.names import INGEST_GROUP
from mgmt.models import Admission, Cell, ControlAction, Destination, Pipe, PipeRevision, Relocation, ScaleGroup
from mgmt.queries.control import control_actions
from mgmt.queries.patterns import told_now
from mgmt.queries.span import span_until
from mgmt.queries.ticks import Silence, silent
from mgmt.queries.timing import Timing, timing

ACTIONS: Final = 5
SPAN: Final = "15m"


class UnknownError(Exception):
    """No pipe and no cell has this name or id."""


def explain(name: str, now: datetime) -> list[str]:
    """Lines on the pipe or the cell of that id, on ingest, or on the pipe of that name, first of all on a control plane
    that does nothing. Raises UnknownError.
    """
    return [*map(_of_silence, silent(now)), *_about(name, now)]


def _of_silence(silence: Silence) -> str:
    since = f" since {clock(silence.since)}" if silence.since else ""
    return f"nobody has done {silence.task}{since}: look at Redis, beat and the workers"


def _about(name: str, now: datetime) -> list[str]:
    if Cell.with_ingest.filter(id=name).exists():
        return about_cell(name, now)
    pipes = list(Pipe.objects.filter(Q(id=name) | Q(name=name)).select_related("tenant").order_by("id"))
    if not pipes:
        raise UnknownError(f"{name!r} is neither a cell nor a pipe's id or name")
    return [line for pipe in pipes for line in about_pipe(pipe, now)]


def about_cell(cell: str, now: datetime) -> list[str]:
    """How the cell is, who may change it now, what its lanes do, and what was done last."""
    state = cell_states(now, [cell])[cell]
    groups = ScaleGroup.objects.filter(cell=cell).exclude(why="").order_by("id")
    done = [_deed(row) for row in control_actions(cell=cell)[:ACTIONS]]
    return [*_of_state(state), *map(_of_group, groups), *done]


def about_pipe(pipe: Pipe, now: datetime) -> list[str]:
    """Where the pipe stands, what it waits for, where its time goes, and how its cell is."""
    lines = [f"pipe {pipe.name} ({pipe.id}) of {pipe.tenant.name} is {pipe.state}"]
    lines += [_of_relocation(row) for row in pipe.relocations.filter(state__in=Relocation.UNDER_WAY)]
    lines += [_of_revision(row) for row in _told(pipe)]
    way = Admission.objects.filter(pipe=pipe, ended_at=None).first()
    if way is not None:
        lines.append(f"it is let in by shares: {way.reason or f'{way.share} % of its keys are let in'}")
    lines += [
        _of_destination(row) for row in pipe.destinations.exclude(state__in=["active", "removed"]).order_by("name")
    ]
    lines += [f"unusual since {clock(found.since)}: {found.words}" for found in told_now([pipe.id])]
    lines.append(_of_time(timing(pipe_id=pipe.id, span=span_until(SPAN, now))))
    return [*lines, *(about_cell(pipe.cell_id, now) if pipe.cell_id else ["it waits for a cell to be placed on"])]


def _of_relocation(row: Relocation) -> str:
    where = f"from cell {row.source_id} to {row.target_id}"
    if row.switched_at is None:
        return f"it is to be moved {where} since {clock(row.asked_at)}: {row.says or 'its turn comes'}"
    waits = ", and wait there so that each key keeps its order" if row.held_at else ""
    new = f"new events go to {row.target_id} since {clock(row.switched_at)}{waits}"
    drains = f"{new}, {row.source_id} works off what it has"
    return f"it is being moved {where}: {drains}{f': {row.says}' if row.says else ''}"


def _told(pipe: Pipe) -> Iterable[PipeRevision]:
    """The live revision and those after it, for they say what is waited for; else the newest."""
    rows = list(pipe.revisions.exclude(state=PipeRevision.State.RETIRED).defer("spec").order_by("number"))
    live = [row.number for row in rows if row.state == PipeRevision.State.LIVE]
    return [row for row in rows if row.number >= live[0]] if live else rows[-1:]


def _of_revision(row: PipeRevision) -> str:
    waits = f": {row.state_reason}" if row.state_reason and row.state != PipeRevision.State.LIVE else ""
    again = "; the Provisioner looks again every second" if row.state in ("requested", "ramping") else ""
    return f"revision {row.number} is {row.state}{waits}{again}"


def _of_destination(row: Destination) -> str:
    why = row.state_reason or row.state_cause
    return f"destination {row.name} is {row.state} since {clock(row.state_since)}{f': {why}' if why else ''}; it holds"


def _of_time(found: Timing) -> str:
    if found.end_to_end_us is None:
        return "nothing was delivered in the last 15 minutes"
    slowest = max(found.pie, key=lambda one: one.share, default=None)
    most = f"; most of the time since ingest: {slowest.name} ({slowest.share:.0%})" if slowest else ""
    return f"of the last 15 minutes' messages 95 of 100 arrived within {found.end_to_end_us / 1000:.1f} ms{most}"


def _of_state(state: CellState) -> list[str]:
    verdict = state.verdict
    if state.cell == INGEST_GROUP:
        lines = []
    elif verdict is None:
        lines = [f"cell {state.cell} has not been heard of yet"]
    else:
        said = f": {'; '.join(verdict.reasons)}" if verdict.reasons else ""
        lines = [f"cell {state.cell} is {verdict.state} since {clock(verdict.since)}{said}"]
    return [*lines, *(_of_controller(controller, state) for controller in get_args(Controller))]


def _of_controller(controller: Controller, state: CellState) -> str:
    refusal = why_not(controller, state)
    if refusal is None:
        return f"{WORDS[controller]}: nothing stands against it"
    protects = "" if why_not(controller, state, protective=True) else "; to protect the cell it may all the same"
    return f"{WORDS[controller]}: not now, for {refusal.why}; again {refusal.again}{protects}"


def _of_group(row: ScaleGroup) -> str:
    return f"{row.words}, {row.minimum} to {row.maximum} of them: {row.why}"


def _deed(row: ControlAction) -> str:
    who = row.author.username if row.author else row.get_controller_display()
    return f"{clock(row.at)} {who}: {row.action} {row.outcome}{f', for {row.reason}' if row.reason else ''}"
