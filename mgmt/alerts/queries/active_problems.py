"""Problems of a tenant at this moment, for the daily digest."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Sum

from mgmt.models import Alert, Destination, Pipe, PipeRevision, Seal, Tenant

DAY = timedelta(days=1)


@dataclass(frozen=True)
class PipeLoss:
    """Units of a pipe that were lost in buckets sealed in the last day."""

    pipe: Pipe
    units: int


@dataclass(frozen=True)
class ActiveProblems:
    """Open alerts that are not snoozed, suspended destinations, failed revisions and losses; `len` counts them all."""

    alerts: list[Alert]
    suspended: list[Destination]
    failed: list[PipeRevision]
    lost: list[PipeLoss]

    def __len__(self) -> int:
        return len(self.alerts) + len(self.suspended) + len(self.failed) + len(self.lost)


def active_problems(tenant: Tenant, now: datetime) -> ActiveProblems:
    """Return the problems of a tenant's pipes, except closed ones."""
    pipes = {pipe.id: pipe for pipe in Pipe.objects.filter(tenant=tenant).exclude(state=Pipe.State.CLOSED)}
    alerts = Alert.objects.filter(pipe__in=pipes, state__in=(Alert.State.OPENED, Alert.State.ACKNOWLEDGED))
    suspended = Destination.objects.filter(pipe__in=pipes, state=Destination.State.SUSPENDED)
    newest = PipeRevision.objects.filter(pipe__in=pipes).defer("spec").order_by("pipe", "-number").distinct("pipe")
    return ActiveProblems(
        alerts=list(alerts.select_related("pipe").order_by("opened_at")),
        suspended=list(suspended.select_related("pipe").order_by("state_since")),
        failed=[row for row in newest.select_related("pipe") if row.state == PipeRevision.State.FAILED],
        lost=[PipeLoss(pipes[pipe], units) for pipe, units in _lost(list(pipes), now).items()],
    )


def _lost(pipe_ids: list[str], now: datetime) -> dict[str, int]:
    sealed = Seal.objects.filter(pipe_id__in=pipe_ids, lost__gt=0, sealed_at__gte=now - DAY)
    return dict(sealed.order_by("pipe_id").values_list("pipe_id").annotate(Sum("lost")))
