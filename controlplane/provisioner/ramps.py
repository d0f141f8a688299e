"""Ramps under way as the Provisioner sees them, with the figures of both revisions at their present step."""

from datetime import datetime
from typing import Any

import msgspec
from django.db.models import Prefetch

from controlplane.provisioner.ramping import RampView
from mgmt.models import Ramp, RampStep
from mgmt.queries.ramps import Figures, Taker, figures_of


def ramps_under_way(now: datetime) -> dict[int, RampView]:
    """By the revision's id; no further query where there is none."""
    steps = Prefetch("steps", RampStep.objects.order_by("-share"))
    rows = Ramp.objects.filter(ended_at=None).select_related("revision", "stable", "held_by").prefetch_related(steps)
    ramps = list(rows)
    if not ramps:
        return {}
    figures = figures_of((taker for ramp in ramps for taker in takers_of(ramp)), now)
    return {ramp.revision_id: view_of(ramp, *(figures[taker] for taker in takers_of(ramp))) for ramp in ramps}


def takers_of(ramp: Ramp) -> tuple[Taker, Taker]:
    """The ramping revision and the stable one, at the ramp's present step."""
    pipe = ramp.revision.pipe_id
    return Taker(pipe, ramp.share, ramp.revision.number), Taker(pipe, ramp.share, ramp.stable.number)


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
        stable=stable if stable.taken else next((kept for step in before if (kept := _kept(step)).taken), stable),
        flows=bool(ramping.taken or stable.taken),
    )


def _kept(step: RampStep) -> Figures:
    """What the stable revision's figures were when the step was left."""
    figures: Any = step.figures.get("stable", {})
    return msgspec.convert(figures, Figures)
