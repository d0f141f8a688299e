"""Failures that several tenants share: the same cause, status, host and response. For staff only."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from django.db.models.fields.json import KT

from dataplane.causes import Cause
from mgmt.alerts.fingerprint import fingerprint_of
from mgmt.alerts.queries.alerts import OPEN
from mgmt.deliveries.cause_wording import cause_in_words
from mgmt.models import Alert, Destination

LEAST_TENANTS: Final = 2
MOST_ALERTS: Final = 5_000  # the newest; an incident of this size needs no longer list
_FIELDS: Final = (
    "id", "cause", "status", "fingerprint", "opened_at", "last_at", "count", "destination", "pipe_id", "pipe__name",
    "pipe__tenant_id", "pipe__tenant__name",
)  # fmt: skip


class CommonFailure(NamedTuple):
    """Key of a common cause, shared by its alerts; `status` is 0 and `fingerprint` "" without a response."""

    cause: str
    status: int
    host: str
    fingerprint: str


@dataclass(frozen=True)
class AffectedAlert:
    """One alert of a common cause, with its pipe and tenant."""

    id: str
    destination: str
    pipe_id: str
    pipe: str
    tenant_id: str
    tenant: str
    count: int
    opened_at: datetime
    last_at: datetime


@dataclass(frozen=True)
class CommonCause:
    """One failure at the same host for several tenants. `alerts`: the oldest first."""

    failure: CommonFailure
    alerts: Sequence[AffectedAlert]

    @property
    def words(self) -> str:
        """The failure as a phrase: `api.example.com returns 503`."""
        if self.failure.status:
            return f"{self.failure.host} returns {self.failure.status}"
        return f"{self.failure.host}: {cause_in_words(self.failure.cause)}"

    @property
    def since(self) -> datetime:
        """Time at which the first of the alerts was opened."""
        return self.alerts[0].opened_at

    @property
    def last_at(self) -> datetime:
        """Time of the newest failure."""
        return max(alert.last_at for alert in self.alerts)

    @property
    def tenants(self) -> int:
        """Number of tenants."""
        return len({alert.tenant_id for alert in self.alerts})

    @property
    def pipes(self) -> int:
        """Number of pipes."""
        return len({alert.pipe_id for alert in self.alerts})


def common_causes() -> list[CommonCause]:
    """Return the failures that two or more tenants have now, those of most tenants first; two queries.

    An alert about failing attempts has its status and response in its sample. The alert with the rest of a
    destination's failures has no response, so it is left out, and so are destinations without a host.
    """
    rows = Alert.objects.filter(state__in=OPEN).exclude(destination="").exclude(fingerprint=Alert.OTHER)
    sampled = rows.annotate(answer=KT("sample__answer"), sample_status=KT("sample__status"))
    found = list(sampled.order_by("-id").values(*_FIELDS, "answer", "sample_status")[:MOST_ALERTS])
    hosts = _hosts(found)
    alike: dict[CommonFailure, list[AffectedAlert]] = defaultdict(list)
    for row in found:
        if host := hosts.get((row["pipe_id"], row["destination"])):
            alike[_failure(row, host)].append(_affected(row))
    causes = [CommonCause(key, sorted(alerts, key=lambda one: one.opened_at)) for key, alerts in alike.items()]
    shared = [cause for cause in causes if cause.tenants >= LEAST_TENANTS]
    return sorted(shared, key=lambda cause: (-cause.tenants, cause.since, cause.failure))


def _hosts(rows: Sequence[dict[str, Any]]) -> dict[tuple[str, str], str]:
    named = Destination.objects.filter(pipe_id__in={row["pipe_id"] for row in rows}, config__has_key="url")
    urls = named.annotate(url=KT("config__url")).values_list("pipe_id", "name", "url")
    return {(pipe_id, name): urlsplit(url).hostname or "" for pipe_id, name, url in urls}


def _failure(row: dict[str, Any], host: str) -> CommonFailure:
    if row["cause"] != Cause.FAILING:
        return CommonFailure(row["cause"], row["status"], host, row["fingerprint"])
    status = str(row["sample_status"] or "")
    return CommonFailure(
        row["cause"], int(status) if status.isdecimal() else 0, host, fingerprint_of(row["answer"] or "")
    )


def _affected(row: dict[str, Any]) -> AffectedAlert:
    return AffectedAlert(
        id=row["id"],
        destination=row["destination"],
        pipe_id=row["pipe_id"],
        pipe=row["pipe__name"],
        tenant_id=row["pipe__tenant_id"],
        tenant=row["pipe__tenant__name"],
        count=row["count"],
        opened_at=row["opened_at"],
        last_at=row["last_at"],
    )
