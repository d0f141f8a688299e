"""Services of scaling: set the policy of a group of lanes or of the ingest replicas."""

from datetime import datetime
from typing import Final

import structlog
from django.db import transaction

from mgmt.cells.services.control import note
from mgmt.errors import InvalidValue
from mgmt.models import ControlAction, ScaleGroup, User

MOST_LANES: Final = 64
LONGEST_GOAL_S: Final = 3_600.0
log = structlog.get_logger(__name__)


def set_scale_policy(
    *, group: ScaleGroup, minimum: int, maximum: int, target: float, goal_s: float, by: User, now: datetime
) -> ScaleGroup:
    """Set the policy: `minimum` to `maximum` lanes (replicas), `target` cores of CPU each, at most `goal_s` of lag.

    The Autoscaler applies it at its next tick. Raises InvalidValue.
    """
    if not 1 <= minimum <= MOST_LANES:
        raise InvalidValue("minimum", f"needs 1 to {MOST_LANES}, got {minimum}")
    if not minimum <= maximum <= MOST_LANES:
        raise InvalidValue("maximum", f"needs {minimum} to {MOST_LANES}, got {maximum}")
    if not 0.05 <= target <= 1:
        raise InvalidValue("target", f"needs 5 to 100 % of a core, got {target:.0%}")
    if not 0 < goal_s <= LONGEST_GOAL_S:
        raise InvalidValue("goal", f"needs more than 0 and at most {LONGEST_GOAL_S:g} s, got {goal_s:g}")
    policy = {"minimum": minimum, "maximum": maximum, "target": target, "goal_s": goal_s}
    with transaction.atomic():
        ScaleGroup.objects.filter(id=group.id).update(**policy)
        reason = f"{minimum} to {maximum} {group.words}, {target:.0%} of a core each, {goal_s:g} s of lag at most"
        detail = {"kind": group.kind, **policy}
        cell = group.cell_id
        note(
            ControlAction.PERSON,
            "scale-policy",
            outcome=ControlAction.Outcome.DONE,
            at=now,
            cell=cell,
            reason=reason,
            author=by,
            detail=detail,
        )
    log.info("scale policy set", cell=cell, by=by.username, **detail)
    group.refresh_from_db()
    return group
