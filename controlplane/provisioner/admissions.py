"""Pipes that are let in by shares, as the Provisioner sees them, and what it does with them."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime

from django.db.models import Sum

from controlplane.interlocks import CellState, why_not
from controlplane.leases import cell_states, note
from controlplane.provisioner.admitting import PENSTOCK, AdmissionView, Admit, Begin, End, Stay, TakeBack, next_step
from controlplane.provisioner.changing import changing
from mgmt.models import Admission, Move, OffsetSet, PipeRevision
from mgmt.provisioning.admission import AdmissionPolicy, filed_under
from mgmt.queries.ramps import Taker, figures_of
from mgmt.queries.span import bucket_at
from mgmt.services import admit_share, begin_step, end_admission, say_of_admission, take_share_back


def admissions_under_way(now: datetime) -> list[AdmissionView]:
    """Those of pipes that run; no further query where there is none."""
    rows = list(Admission.objects.filter(ended_at=None, pipe__cell__isnull=False).select_related("pipe", "held_by"))
    running = dict(_running([row.pipe_id for row in rows])) if rows else {}
    rows = [row for row in rows if row.pipe_id in running]
    if not rows:
        return []
    takers = {row.pipe_id: Taker(row.pipe_id, row.share, running[row.pipe_id]) for row in rows}
    since = {takers[row.pipe_id]: bucket_at(row.step_at) for row in rows if row.step_at}
    figures, held, busy = figures_of(takers.values(), now, since), _held(list(takers)), _being_released(list(takers))
    return [
        AdmissionView(
            pipe=row.pipe_id,
            cell=str(row.pipe.cell_id),
            active=row.pipe.state == row.pipe.State.ACTIVE,
            share=row.share,
            step_at=row.step_at,
            held_by="" if row.held_at is None else row.held_by.username if row.held_by else PENSTOCK,
            reason=row.reason,
            figures=figures[takers[row.pipe_id]],
            waiting=_sum(held[row.pipe_id], upto=row.share) + busy.get(row.pipe_id, 0),
            beyond=_sum(held[row.pipe_id], above=row.share),
        )
        for row in rows
    ]


def _running(pipes: list[str]) -> Iterable[tuple[str, int]]:
    """Each pipe's revision that takes what is let in."""
    rows = PipeRevision.objects.filter(pipe__in=pipes, state__in=["ramping", "live"]).order_by("number")
    return rows.values_list("pipe_id", "number")


def _held(pipes: list[str]) -> Mapping[str, dict[str, int]]:
    """Of each pipe, how many messages are held before its steps, by what they are filed under."""
    rows = OffsetSet.objects.filter(pipe_id__in=pipes, destination="", kind=OffsetSet.Kind.HELD)
    found: dict[str, dict[str, int]] = defaultdict(dict)
    for pipe, cause, count in rows.values_list("pipe_id", "cause").annotate(n=Sum("count")):
        found[pipe][cause] = count
    return found


def _being_released(pipes: list[str]) -> dict[str, int]:
    moves = Move.objects.filter(pipe__in=pipes, destination="", what=Move.What.RELEASE, state__in=Move.UNDER_WAY)
    return {move.pipe_id: max(1, move.total - move.moved - move.skipped) for move in moves}


def _sum(held: Mapping[str, int], *, upto: int | None = None, above: int | None = None) -> int:
    if upto is not None:
        return sum(count for cause, count in held.items() if cause <= filed_under(upto))
    return sum(count for cause, count in held.items() if cause > filed_under(above or 0))


def let_in(now: datetime, policy: AdmissionPolicy) -> int:
    """Do what is due for each of them; how many were changed. Safe to do twice: rows move only from what was seen."""
    views = admissions_under_way(now)
    states = cell_states(now, sorted({view.cell for view in views})) if views else {}
    return sum(_let_in(view, states.get(view.cell), policy, now) for view in views)


def _let_in(view: AdmissionView, state: CellState | None, policy: AdmissionPolicy, now: datetime) -> bool:
    match step := next_step(view, policy, now):
        case Begin():
            return begin_step(pipe_id=view.pipe, now=now)
        case End():
            return end_admission(pipe_id=view.pipe, now=now)
        case Stay():
            _say(view, step.reason)
            return False
        case Admit() | TakeBack():
            refusal = why_not("provision", state, protective=isinstance(step, TakeBack)) if state else None
            if refusal:
                _say(view, f"{view.share} % of its keys are let in; {refusal.why}")
                return False
            return _change(view, step, now)


def _change(view: AdmissionView, step: Admit | TakeBack, now: datetime) -> bool:
    """Under the cell's lease, as any change of it."""
    back = isinstance(step, TakeBack)
    with changing({view.cell: back}, f"admission of {view.pipe}", now) as ours:
        if not ours or not _make(view, step, now):
            return False
        deed, outcome = ("take-share-back", "rolled back") if back else ("admit-share", "done")
        reason = step.reason if isinstance(step, TakeBack) else ""
        detail = {"share": step.share}
        note("provision", deed, outcome=outcome, at=now, cell=view.cell, pipe=view.pipe, reason=reason, detail=detail)
        return True


def _make(view: AdmissionView, step: Admit | TakeBack, now: datetime) -> bool:
    if isinstance(step, TakeBack):
        return take_share_back(pipe_id=view.pipe, of_share=view.share, share=step.share, reason=step.reason, now=now)
    return admit_share(pipe_id=view.pipe, of_share=view.share, share=step.share, now=now)


def _say(view: AdmissionView, reason: str) -> None:
    if view.reason != reason:
        say_of_admission(pipe_id=view.pipe, reason=reason)
