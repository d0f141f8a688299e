"""Settings of the control plane, read from Django's in one typed place; the defaults suit a box in development."""

from datetime import timedelta
from pathlib import Path
from typing import Final

from msgspec import Struct

from controlplane.compute.installed import INSTALLED_VARIABLE
from dataplane.addresses import DEFAULT_KAFKA
from mgmt.cells.placement import PlacementPolicy
from mgmt.cells.policies import (
    admission_policy,
    cell_master,
    placing_policy,
    ramp_policy,
    setting,
    topic_shape,
)
from mgmt.deliveries.health import HealthPolicy
from mgmt.pipes.topics import DAY_MS, HOUR_MS, TopicShape
from mgmt.ramps.admission_schedule import AdmissionPolicy
from mgmt.ramps.schedule import RampPolicy

AUDIT_RETENTION_MS: Final = 7 * DAY_MS
HEARTBEAT_RETENTION_MS: Final = HOUR_MS
OPERATIONAL_RETENTION_MS: Final = 7 * DAY_MS


class ControlSettings(Struct, frozen=True):
    """Addresses and limits of the control plane."""

    kafka: str
    var: Path
    cell_master: str
    grace_s: int
    topics: TopicShape
    attempt_sample_per_s: int  # successes kept per pipe and second; failures are all kept
    attempts_keep_h: int
    facts_keep_d: int
    seals_keep_d: int  # a year, and the month that it is compared with
    audit_keep_d: int
    rollout_up_s: float
    rollout_watch_s: float
    lanes_max: int  # of one kind in a cell, unless staff set another limit
    cells_max: int = 1  # open to all tenants; staff add the cells that are dedicated to one tenant
    ingest_max: int = 0  # replicas, unless staff set another limit; 0: the Autoscaler does not scale ingest
    installed_release: str = ""  # in a box: of the installed code when the supervisor started
    ramp: RampPolicy = RampPolicy()
    placing: PlacementPolicy = PlacementPolicy()
    admission: AdmissionPolicy = AdmissionPolicy()
    health: HealthPolicy = HealthPolicy()

    @property
    def ends_keep(self) -> timedelta:
        """Return how long dead letters and held messages can be shown and returned: the retention of their topics."""
        kept = self.topics.retention_ms
        return timedelta(milliseconds=max(kept["dead"], kept["held"]))


def control_settings() -> ControlSettings:
    """Return the control plane's settings, read from Django's."""
    return ControlSettings(
        kafka=setting("PENSTOCK_KAFKA", DEFAULT_KAFKA),
        var=Path(setting("PENSTOCK_VAR", "var")).absolute(),
        cell_master=cell_master(),
        grace_s=int(setting("PENSTOCK_GRACE_S", 60)),
        topics=topic_shape(),
        attempt_sample_per_s=int(setting("PENSTOCK_ATTEMPT_SAMPLE", 5)),
        attempts_keep_h=int(setting("PENSTOCK_ATTEMPTS_KEEP_H", 72)),
        facts_keep_d=int(setting("PENSTOCK_FACTS_KEEP_D", 30)),
        seals_keep_d=int(setting("PENSTOCK_SEALS_KEEP_D", 400)),
        audit_keep_d=int(setting("PENSTOCK_AUDIT_KEEP_D", 400)),
        rollout_up_s=float(setting("PENSTOCK_ROLLOUT_UP_S", 75)),
        rollout_watch_s=float(setting("PENSTOCK_ROLLOUT_WATCH_S", 90)),
        ramp=ramp_policy(),
        placing=placing_policy(),
        admission=admission_policy(),
        health=_health_policy(),
        lanes_max=int(setting("PENSTOCK_LANES_MAX", 1)),
        cells_max=int(setting("PENSTOCK_CELLS_MAX", 1)),
        ingest_max=int(setting("PENSTOCK_INGEST_MAX", 0)),
        installed_release=setting(INSTALLED_VARIABLE, ""),
    )


def _health_policy() -> HealthPolicy:
    return HealthPolicy(
        failing_ratio=float(setting("PENSTOCK_FAILING_RATIO", 0.5)),
        failing_least=int(setting("PENSTOCK_FAILING_LEAST", 3)),
        recovered_ratio=float(setting("PENSTOCK_RECOVERED_RATIO", 0.1)),
        waits=timedelta(seconds=float(setting("PENSTOCK_WAITS_S", 600))),
        recovery=timedelta(seconds=float(setting("PENSTOCK_RECOVERY_S", 300))),
    )
