"""Reads the open admissions as the Provisioner sees them, and takes their next steps."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime

from django.db.models import Sum

from controlplane.interlocks import CellState, Refusal, refusal_of
from controlplane.leases import cell_states, note
from controlplane.provisioner.admitting import (
    PENSTOCK,
    AdmitShare,
    FinishAdmission,
    KeepAdmission,
    PipeAdmission,
    ReduceAdmission,
    StartAdmission,
    next_step,
)
from controlplane.provisioner.cell_change import changing
from controlplane.provisioner.decide import LONGEST_REASON
from mgmt.ledger.queries.bucket_range import bucket_at
from mgmt.models import Admission, ControlAction, OffsetSet, PipeRevision, Redrive
from mgmt.ramps.admission_schedule import AdmissionPolicy, filed_under
from mgmt.ramps.queries import RampParticipant, figures_of
from mgmt.services import annotate_admission, begin_step, end_admission, lower_admission, raise_admission


def open_admissions(now: datetime) -> list[PipeAdmission]:
    """Return the open admissions of pipes with a ramping or live revision; one query if no admission is open."""
    rows = list(Admission.objects.filter(ended_at=None, pipe__cell__isnull=False).select_related("pipe", "held_by"))
    running = dict(_running([row.pipe_id for row in rows])) if rows else {}
    rows = [row for row in rows if row.pipe_id in running]
    if not rows:
        return []
    participants = {row.pipe_id: RampParticipant(row.pipe_id, row.share, running[row.pipe_id]) for row in rows}
    since = {participants[row.pipe_id]: bucket_at(row.step_at) for row in rows if row.step_at}
    pipes = list(participants)
    figures, held, releasing = figures_of(participants.values(), now, since), _held(pipes), _being_released(pipes)
    return [
        PipeAdmission(
            pipe=row.pipe_id,
            cell=str(row.pipe.cell_id),
            active=row.pipe.state == row.pipe.State.ACTIVE,
            share=row.share,
            step_at=row.step_at,
            held_by="" if row.held_at is None else row.held_by.username if row.held_by else PENSTOCK,
            reason=row.reason,
            figures=figures[participants[row.pipe_id]],
            waiting=_sum(held[row.pipe_id], upto=row.share) + releasing.get(row.pipe_id, 0),
            beyond=_sum(held[row.pipe_id], above=row.share),
        )
        for row in rows
    ]


def _running(pipes: list[str]) -> Iterable[tuple[str, int]]:
    """Return (pipe, number) of the revisions that get the admitted messages, the newest of each pipe last."""
    rows = PipeRevision.objects.filter(pipe__in=pipes, state__in=["ramping", "live"]).order_by("number")
    return rows.values_list("pipe_id", "number")


def _held(pipes: list[str]) -> Mapping[str, dict[str, int]]:
    """Return, for each pipe, how many messages are held before its steps, by the share they wait for (filed_under)."""
    rows = OffsetSet.objects.filter(pipe_id__in=pipes, destination="", kind=OffsetSet.Kind.HELD)
    found: dict[str, dict[str, int]] = defaultdict(dict)
    for pipe, cause, count in rows.values_list("pipe_id", "cause").annotate(n=Sum("count")):
        found[pipe][cause] = count
    return found


def _being_released(pipes: list[str]) -> dict[str, int]:
    releases = Redrive.objects.filter(
        pipe__in=pipes, destination="", what=Redrive.What.RELEASE, state__in=Redrive.UNDER_WAY
    )
    return {row.pipe_id: max(1, row.total - row.moved - row.skipped) for row in releases}


def _sum(held: Mapping[str, int], *, upto: int | None = None, above: int | None = None) -> int:
    if upto is not None:
        return sum(count for cause, count in held.items() if cause <= filed_under(upto))
    return sum(count for cause, count in held.items() if cause > filed_under(above or 0))


def advance_admissions(now: datetime, policy: AdmissionPolicy) -> int:
    """Take the due step of each open admission; return how many were changed.

    Safe to run twice: rows change only if they are still as they were read.
    """
    views = open_admissions(now)
    states = cell_states(now, sorted({view.cell for view in views})) if views else {}
    return sum(_take_step(view, states.get(view.cell), policy, now) for view in views)


def _take_step(view: PipeAdmission, state: CellState | None, policy: AdmissionPolicy, now: datetime) -> bool:
    match step := next_step(view, policy, now):
        case StartAdmission():
            return begin_step(pipe_id=view.pipe, now=now)
        case FinishAdmission():
            return end_admission(pipe_id=view.pipe, now=now)
        case KeepAdmission():
            _annotate(view, step.reason)
            return False
        case AdmitShare() | ReduceAdmission():
            refusal = refusal_of("provision", state, protective=isinstance(step, ReduceAdmission)) if state else None
            if refusal:
                _store_refusal(view, step, refusal, now)
                return False
            return _change(view, step, now)


def _change(view: PipeAdmission, step: AdmitShare | ReduceAdmission, now: datetime) -> bool:
    """Change the share under the cell's lease and write it to the control audit; return True if it was changed."""
    is_reduction = isinstance(step, ReduceAdmission)
    with changing({view.cell: is_reduction}, f"admission of {view.pipe}", now) as ours:
        if not ours or not _set_share(view, step, now):
            return False
        outcome = ControlAction.Outcome.ROLLED_BACK if is_reduction else ControlAction.Outcome.DONE
        _note(view, step, now, outcome=outcome, reason=step.reason if isinstance(step, ReduceAdmission) else "")
        return True


def _set_share(view: PipeAdmission, step: AdmitShare | ReduceAdmission, now: datetime) -> bool:
    if isinstance(step, ReduceAdmission):
        return lower_admission(pipe_id=view.pipe, of_share=view.share, share=step.share, reason=step.reason, now=now)
    return raise_admission(pipe_id=view.pipe, of_share=view.share, share=step.share, now=now)


def _store_refusal(view: PipeAdmission, step: AdmitShare | ReduceAdmission, refusal: Refusal, now: datetime) -> None:
    """Store why the step is refused on the admission and, if that is another reason than before, in the audit."""
    if _annotate(view, f"{view.share} % of its keys are admitted; {refusal.public_reason}"):
        _note(view, step, now, outcome=ControlAction.Outcome.REFUSED, refusal=refusal.kind, reason=refusal.why)


def _note(
    view: PipeAdmission,
    step: AdmitShare | ReduceAdmission,
    now: datetime,
    *,
    outcome: ControlAction.Outcome,
    reason: str,
    refusal: str = "",
) -> None:
    note(
        "provision",
        "take-share-back" if isinstance(step, ReduceAdmission) else "admit-share",
        outcome=outcome,
        at=now,
        cell=view.cell,
        pipe=view.pipe,
        refusal=refusal,
        reason=reason,
        detail={"share": step.share},
    )


def _annotate(view: PipeAdmission, reason: str) -> bool:
    """Store what the admission waits for; return False if its row says that already."""
    stored = reason[:LONGEST_REASON]
    if view.reason == stored:
        return False
    annotate_admission(pipe_id=view.pipe, reason=stored)
    return True
