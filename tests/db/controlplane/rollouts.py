"""Releases, heartbeats and times for tests of rollouts."""

from datetime import UTC, datetime, timedelta

from controlplane.deployer.snapshot import RolloutPolicy
from mgmt.models import Heartbeat, Lease, Release, Rollout
from mgmt.services import register_release, request_rollout

NOW = datetime(2026, 11, 21, 12, 0, 30, tzinfo=UTC)
POLICY = RolloutPolicy(up_s=75, watch_s=90)
OLD, NEW = "0" * 16, "1" * 16


def later(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def registered(id_: str, wire: int = 1) -> Release:
    return register_release(release=id_, wire=wire, about="", now=NOW, for_ingest=True)


def beat(
    cell: str, writer: str, now: datetime, *, epoch: int = 1, pid: int = 1, state: str = "running", **body: object
) -> None:
    fields = {"kind": writer.rpartition("-")[0], "epoch": epoch, "incarnation": "x", "state": state, "at": now}
    Heartbeat.objects.update_or_create(
        cell=cell, writer=writer, defaults={**fields, "table_offset": 1, "body": {"pid": pid, **body}}
    )


def requested() -> Rollout:
    return request_rollout(release=registered(NEW), author=None, now=NOW)


def holder(cell: str) -> str:
    lease = Lease.objects.filter(cell=cell).first()
    return lease.holder if lease else ""
