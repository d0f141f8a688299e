"""Context that every page of a pipe needs."""

from functools import partial
from typing import Any

from django.utils import timezone

from mgmt.alerts.queries.alerts import open_loss_alerts
from mgmt.cells.queries.overdue_tasks import is_overdue
from mgmt.cells.schedule import PROVISION
from mgmt.models import Pipe, PipeRevision
from mgmt.patterns.queries import reported_findings
from mgmt.pipes.queries.pipes import pipe_statuses
from mgmt.pipes.queries.resuming import resume_state
from mgmt.web.rendering import once


def pipe_context(pipe: Pipe, tab: str) -> dict[str, Any]:
    """Return the context that every tab of a pipe needs."""
    return {
        "pipe": pipe,
        "tab": tab,
        "standing": pipe_statuses([pipe])[pipe.id],
        "get_unusual": once(lambda: list(reported_findings([pipe.id]))),
        "get_resume": once(partial(resume_state, pipe)),
        "get_loss_alert": once(lambda: open_loss_alerts([pipe.id]).get(pipe.id)),
        "get_behind": once(partial(is_overdue, PROVISION, timezone.now())),
    }


def newest_revision(pipe: Pipe) -> PipeRevision:
    """Return the live revision, or the newest one if none is live yet."""
    return pipe.revisions.filter(state=PipeRevision.State.LIVE).first() or pipe.revisions.latest("number")
