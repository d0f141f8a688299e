"""Ramps under way as the Provisioner sees them, with the figures of both revisions at their present step."""

from datetime import datetime

from django.db.models import Prefetch

from controlplane.provisioner.ramping import RampView
from mgmt.models import Ramp, RampStep
from mgmt.queries.ramps import Figures, figures_of, kept_figures, takers_of


def ramps_under_way(now: datetime) -> dict[int, RampView]:
    """By the revision's id; no further query where there is none."""
    steps = Prefetch("steps", RampStep.objects.order_by("-share"))
    rows = Ramp.objects.filter(ended_at=None).select_related("revision", "stable", "held_by").prefetch_related(steps)
    ramps = list(rows)
    if not ramps:
        return {}
    takers = {ramp.revision_id: takers_of(ramp, ramp.share) for ramp in ramps}
    figures = figures_of((taker for both in takers.values() for taker in both), now)
    return {ramp.revision_id: view_of(ramp, *(figures[taker] for taker in takers[ramp.revision_id])) for ramp in ramps}


def view_of(ramp: Ramp, ramping: Figures, stable: Figures) -> RampView:
    """The ramp with the figures of its present step. `ramp.steps`: the newest first."""
    now, *before = list(ramp.steps.all())
    return RampView(
        revision=ramp.revision.number,
        stable_number=ramp.stable.number,
        share=ramp.share,
        began_at=now.began_at,
        held_by=ramp.held_by.username if ramp.held_by else "",
        ramping=ramping,
        stable=stable if stable.taken else next((kept for kept in map(_stable, before) if kept.taken), stable),
    )


def _stable(step: RampStep) -> Figures:
    return kept_figures(step, "stable")
