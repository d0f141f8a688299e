"""Reads the row of ingest as the replicas that the box's supervisor should run."""

from controlplane.compute.files import DesiredReplicas
from dataplane.names import INGEST_GROUP
from mgmt.models import Cell


def desired_replicas(row: Cell) -> DesiredReplicas:
    """Return the desired replicas of the row `ingest`."""
    return DesiredReplicas(row.lanes[INGEST_GROUP], row.release_id or "", row.canary_id or "")
