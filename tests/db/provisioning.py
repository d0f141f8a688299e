"""Snapshot of the rows, as the Provisioner takes it at each tick."""

from datetime import datetime

from django.utils import timezone

from controlplane.compute.memory import MemoryCompute
from controlplane.compute.port import Compute
from controlplane.provisioner import snapshot_queries
from controlplane.provisioner.snapshot import ProvisionerSnapshot
from controlplane.settings import control_settings


def snapshot(
    compute: Compute | None = None, *, problems: dict[str, str] | None = None, now: datetime | None = None
) -> ProvisionerSnapshot:
    """Return the snapshot of a Provisioner that has published nothing; by default without any application."""
    settings = control_settings()
    return snapshot_queries.take_snapshot(
        compute=compute or MemoryCompute(),
        published={},
        master="local[2]",
        now=now or timezone.now(),
        problems=problems or {},
        check_topics=False,
        policy=settings.ramp,
        placing=settings.placing,
    )
