"""Problems of a tenant at this moment, for the daily digest."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from mgmt.deliveries.queries.undelivered import lost_messages
from mgmt.ledger.queries.bucket_range import BucketRange, bucket_at
from mgmt.models import Alert, Destination, Pipe, PipeRevision, Tenant

DAY = timedelta(days=1)


@dataclass(frozen=True)
class PipeLoss:
    """Messages of a pipe that were lost in sealed minutes of the last day, as the home page counts them."""

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
    span = BucketRange("24h", bucket_at(now - DAY), bucket_at(now))
    lost = lost_messages(pipes=list(pipes.values()), span=span)
    newest = PipeRevision.objects.filter(pipe__in=pipes).defer("spec").order_by("pipe", "-number").distinct("pipe")
    return ActiveProblems(
        alerts=list(alerts.select_related("pipe").order_by("opened_at")),
        suspended=list(suspended.select_related("pipe").order_by("state_since")),
        failed=[row for row in newest.select_related("pipe") if row.state == PipeRevision.State.FAILED],
        lost=[PipeLoss(pipes[pipe], units) for pipe, units in lost.items()],
    )
