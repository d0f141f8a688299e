"""Lanes of a box's first cell: the number that staff set by scale policies, and the lanes that beat."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

from dataplane.names import LANE_KINDS
from localbox.testing import Box
from tests.support.box_shell import query_rows, shell_json
from tests.support.patience import until

FRESH: Final = timedelta(seconds=4)
SCALER_S: Final = 90  # for the Autoscaler to sample a cell, or to notice that its lanes have followed
ONE_OF_EACH: Final[Mapping[str, int]] = dict.fromkeys(LANE_KINDS, 1)
POLICIES: Final = """
from django.utils import timezone
from mgmt.models import ScaleGroup
from mgmt.services import set_scale_policy
from mgmt.pipes.services.demo import ensure_staff_user
for kind, policy in {policies}.items():
    group = ScaleGroup.objects.get(cell="c1", kind=kind)
    set_scale_policy(group=group, by=ensure_staff_user(), now=timezone.now(), goal_s=5.0, **policy)
print("{{}}")
"""
GROUPS: Final = "SELECT kind FROM mgmt_scalegroup WHERE cell_id = 'c1'"
BEATING: Final = """
SELECT kind, count(*) FROM mgmt_heartbeat
WHERE cell = 'c1' AND kind <> 'driver' AND state = 'running' AND at > %s AND body -> 'partitions' <> '[]' GROUP BY kind
"""
PID: Final = "SELECT (body ->> 'pid')::int FROM mgmt_heartbeat WHERE cell = 'c1' AND writer = %s"
LEASES: Final = "SELECT holder FROM mgmt_lease WHERE holder <> ''"


def beating(box: Box, since: datetime | None = None) -> dict[str, int]:
    """Count by kind the lanes that have reported since then, or recently, as running with partitions."""
    return dict(query_rows(box, BEATING, since or datetime.now(UTC) - FRESH))


def pid_of(box: Box, writer: str) -> int:
    """Return the process id of a lane, by its last heartbeat."""
    [(pid,)] = query_rows(box, PID, writer)
    return int(pid)


def set_policies(box: Box, policies: Mapping[str, Mapping[str, float]]) -> None:
    """Set the scale policies of these kinds of lanes, as staff do, once the Autoscaler knows their groups."""
    known = policies.keys()
    until(lambda: {kind for (kind,) in query_rows(box, GROUPS)} >= known, "the Autoscaler has looked", SCALER_S)
    shell_json(box, POLICIES.format(policies=policies))


def scale_to(box: Box, limit_s: float, **lanes: int) -> None:
    """Set so many lanes of these kinds, one of each other, as staff do, and wait until all of them beat in time.

    Afterwards the Autoscaler has released its lease.
    """
    set_policies(box, {kind: {"minimum": count, "maximum": count, "target": 0.75} for kind, count in lanes.items()})
    wanted = {**ONE_OF_EACH, **lanes}
    until(lambda: beating(box) == wanted, f"{wanted} beat", limit_s, seen=lambda: beating(box))
    until(lambda: not query_rows(box, LEASES), "the lease is given back", SCALER_S)
