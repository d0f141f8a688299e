"""Events of a pipe within a period: revisions that went live, steps and rollbacks of ramps, scaling of its cell."""

from datetime import datetime
from typing import Final

from django.db.models import Q, QuerySet

from mgmt.models import ControlAction, Pipe, PipeRevision, Ramp, RampStep

MOST_EVENTS: Final = 100
NEWEST_ACTIONS: Final = 500  # of the cell; the index has no time, and older entries are rarely within a plotted range


def revisions_live_within(pipe: Pipe, since: datetime, until: datetime) -> QuerySet[PipeRevision]:
    """Return the revisions that went live in the period."""
    return pipe.revisions.filter(live_at__range=(since, until)).defer("spec").order_by("-number")[:MOST_EVENTS]


def ramp_steps_within(pipe: Pipe, since: datetime, until: datetime) -> QuerySet[RampStep]:
    """Return the steps that began in the period, and those of ramps that were rolled back in it."""
    period = (since, until)
    ended_early = Q(ramp__outcome__in=(Ramp.Outcome.ROLLED_BACK, Ramp.Outcome.OVERTAKEN), ramp__ended_at__range=period)
    steps = RampStep.objects.filter(Q(began_at__range=period) | ended_early, ramp__revision__pipe=pipe)
    return steps.select_related("ramp__revision").defer("figures", "ramp__revision__spec").order_by("-id")[:MOST_EVENTS]


def scalings_within(pipe: Pipe, since: datetime, until: datetime) -> QuerySet[ControlAction]:
    """Return the changes of the number of lanes of the pipe's cell in the period."""
    newest = ControlAction.objects.filter(cell=pipe.cell_id).order_by("-id").values("id")[:NEWEST_ACTIONS]
    rows = ControlAction.objects.filter(
        id__in=newest, controller="scale", outcome=ControlAction.Outcome.DONE, at__range=(since, until)
    )
    return rows.order_by("-id")[:MOST_EVENTS]
