"""Reads the row of ingest as the replicas that the box's supervisor should run."""

from controlplane.compute.files import DesiredReplicas
from dataplane.names import INGEST_GROUP
from mgmt.models import Cell


def ingest_row() -> Cell:
    """Return the row by which ingest is scaled and gets releases. Raises Cell.DoesNotExist."""
    return Cell.with_ingest.get(id=INGEST_GROUP)


def desired_replicas(row: Cell) -> DesiredReplicas:
    """Return the desired replicas of the row `ingest`."""
    return DesiredReplicas(row.lanes[INGEST_GROUP], row.release_id or "", row.canary_id or "")
