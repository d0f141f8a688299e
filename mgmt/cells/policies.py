"""Typed access to the Django settings of the Provisioner; the defaults suit one box in development."""

import os
from datetime import timedelta
from typing import Any

from django.conf import settings

from mgmt.cells.placement import PlacementPolicy
from mgmt.pipes.topics import RETENTION_MS, TopicShape
from mgmt.ramps.admission_schedule import AdmissionPolicy, admission_steps
from mgmt.ramps.schedule import RampPolicy, ramp_steps


def topic_shape() -> TopicShape:
    """Return the shape of new topics; in production with 3 replicas and 2 in-sync ones by default."""
    production = setting("PENSTOCK_ENV", "development") == "production"
    return TopicShape(
        partitions=int(setting("PENSTOCK_PARTITIONS", 4)),
        replication=int(setting("PENSTOCK_REPLICATION", 3 if production else 1)),
        min_isr=int(setting("PENSTOCK_MIN_ISR", 2 if production else 1)),
        retention_ms=dict(RETENTION_MS),
        taps_partitions=int(setting("PENSTOCK_TAPS_PARTITIONS", 1)),
    )


def ramp_policy() -> RampPolicy:
    """Return the policy of ramps."""
    return RampPolicy(
        steps=ramp_steps(str(setting("PENSTOCK_RAMP_STEPS", "1,5,25,50,100"))),
        hold=timedelta(seconds=float(setting("PENSTOCK_RAMP_HOLD_S", 30))),
        evidence=int(setting("PENSTOCK_RAMP_EVIDENCE", 20)),
        patience=timedelta(seconds=float(setting("PENSTOCK_RAMP_PATIENCE_S", 300))),
    )


def placing_policy() -> PlacementPolicy:
    """Return the policy of placement."""
    return PlacementPolicy(
        shard=int(setting("PENSTOCK_PLACING_SHARD", 2)),
        headroom=float(setting("PENSTOCK_PLACING_HEADROOM", 0.3)),
    )


def cell_master() -> str:
    """Return the Spark master URL of the cells."""
    return str(setting("PENSTOCK_CELL_MASTER", "local[16,1000]"))


def admission_policy() -> AdmissionPolicy:
    """Return the policy of admissions."""
    return AdmissionPolicy(
        above=int(setting("PENSTOCK_ADMISSION_ABOVE", 500)),
        steps=admission_steps(str(setting("PENSTOCK_ADMISSION_STEPS", "20,50,100"))),
        hold=timedelta(seconds=float(setting("PENSTOCK_RAMP_HOLD_S", 30))),
        evidence=int(setting("PENSTOCK_RAMP_EVIDENCE", 20)),
        patience=timedelta(seconds=float(setting("PENSTOCK_RAMP_PATIENCE_S", 300))),
    )


def setting(name: str, default: Any) -> Any:
    """Return the Django setting, else the environment variable of this name, else `default`."""
    known = getattr(settings, name, None)
    return os.environ.get(name, default) if known is None else known
