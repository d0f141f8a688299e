"""Reads the open ramps as the Provisioner sees them, with the figures of both revisions at their present step."""

from datetime import datetime

from django.db.models import Prefetch

from controlplane.provisioner.ramping import RampProgress
from mgmt.models import Ramp, RampStep
from mgmt.pipes.execution import execution_of
from mgmt.ramps.queries import RampFigures, figures_of, kept_figures, ramp_participants


def open_ramps(now: datetime) -> dict[int, RampProgress]:
    """Return the open ramps by their revision's id; one query if there is none."""
    steps = Prefetch("steps", RampStep.objects.order_by("-share"))
    rows = Ramp.objects.filter(ended_at=None).select_related("revision", "stable", "held_by").prefetch_related(steps)
    ramps = list(rows)
    if not ramps:
        return {}
    participants = {ramp.revision_id: ramp_participants(ramp, ramp.share) for ramp in ramps}
    figures = figures_of((one for both in participants.values() for one in both), now)
    return {
        ramp.revision_id: view_of(ramp, *(figures[one] for one in participants[ramp.revision_id])) for ramp in ramps
    }


def view_of(ramp: Ramp, ramping: RampFigures, stable: RampFigures) -> RampProgress:
    """Return the ramp with the figures of its present step. `ramp.steps` must be prefetched, the newest first."""
    now, *before = list(ramp.steps.all())
    return RampProgress(
        revision=ramp.revision.number,
        stable_number=ramp.stable.number,
        share=ramp.share,
        began_at=now.began_at,
        held_by=ramp.held_by.username if ramp.held_by else "",
        ramping=ramping,
        stable=stable if stable.taken else next((kept for kept in map(_stable, before) if kept.taken), stable),
        changes_execution=execution_of(ramp.revision.spec) != execution_of(ramp.stable.spec),
    )


def _stable(step: RampStep) -> RampFigures:
    return kept_figures(step, "stable")
