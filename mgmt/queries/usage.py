"""What was spent: by pipe, by day, by tenant, by cell. Sums of rows; nothing is estimated here."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, Final

from django.db.models import Q, QuerySet, Sum

from mgmt.models import Pipe, Tenant, Usage

RANGES: Final[Mapping[str, int]] = {"7d": 7, "30d": 30, "90d": 90}
DEFAULT_RANGE: Final = "7d"
_IN, _OUT = Q(kind="ingest"), Q(kind__startswith="transmit")


@dataclass(frozen=True)
class Days:
    """Whole days in UTC, both included; the last one is still going on. `name` is the selector's word."""

    name: str
    first: date
    last: date


@dataclass(frozen=True)
class Amount:
    """What was taken in, sent, and spent on it.

    events, in_bytes:    accepted at ingest
    runs:                messages that process lanes took, repeats too
    attempts, out_bytes: tries at destinations, failed ones too, and the bodies that were sent
    cpu_us:              CPU of ingest and of all lanes
    refused:             events over the tenant's quota; a request that was refused unread counts as one
    """

    events: int = 0
    in_bytes: int = 0
    runs: int = 0
    attempts: int = 0
    out_bytes: int = 0
    cpu_us: int = 0
    refused: int = 0

    def share_of(self, whole: "Amount") -> float | None:
        """Which part of the whole's CPU this is; None if none was used."""
        return self.cpu_us / whole.cpu_us if whole.cpu_us else None


@dataclass(frozen=True)
class Line:
    """One line of a list: what it is about, and its part of the list's CPU. `about` is a day, a pipe, a tenant."""

    about: Any
    amount: Amount
    share: float | None


@dataclass(frozen=True)
class GroupLine:
    """What processes of one kind used in a cell, and how much of it no pipe's work took."""

    cell: str
    kind: str
    cpu_us: int
    idle_us: int

    @property
    def idle_share(self) -> float | None:
        """None if they used nothing."""
        return self.idle_us / self.cpu_us if self.cpu_us else None


def days_until(name: str, today: date) -> Days:
    """The named range up to today; an unknown name means the default."""
    known = name if name in RANGES else DEFAULT_RANGE
    return Days(known, today - timedelta(days=RANGES[known] - 1), today)


def rows_of(days: Days, *, tenant: Tenant | None = None, pipe: Pipe | None = None) -> QuerySet[Usage]:
    """The rows of some days, of one pipe, of one tenant's pipes, or all, those that are nobody's too."""
    rows = Usage.objects.filter(day__range=(days.first, days.last))
    if pipe is not None:
        return rows.filter(pipe=pipe)
    return rows.filter(pipe__tenant=tenant) if tenant is not None else rows


def total_of(rows: QuerySet[Usage]) -> Amount:
    """All of it together."""
    return Amount(**rows.aggregate(**_sums()))


def by_day(rows: QuerySet[Usage]) -> list[Line]:
    """A line for each day with usage, the newest first."""
    return sorted(_lines(rows, "day"), key=lambda line: line.about, reverse=True)


def by_pipe(rows: QuerySet[Usage]) -> list[Line]:
    """A line for each pipe of a tenant's rows, the most expensive first; `about` is the pipe."""
    lines = _lines(rows, "pipe_id")
    pipes = Pipe.objects.in_bulk([line.about for line in lines])
    return [Line(pipes[line.about], line.amount, line.share) for line in lines]


def by_tenant(rows: QuerySet[Usage]) -> list[Line]:
    """A line for each tenant, the most expensive first; `about` is its name. What no pipe's work took is under ""."""
    lines = _lines(rows, "pipe__tenant_id")
    names = dict(Tenant.objects.values_list("id", "name"))
    return [Line(names.get(line.about, ""), line.amount, line.share) for line in lines]


def by_group(rows: QuerySet[Usage]) -> list[GroupLine]:
    """A line for each kind of process in each cell; cell "" is ingest's, which serves all."""
    sums = rows.order_by("cell", "kind").values_list("cell", "kind")
    used, idle = Sum("cpu_us"), Sum("cpu_us", filter=Q(pipe=None), default=0)
    return [GroupLine(*row) for row in sums.annotate(used_us=used, idle_us=idle)]


def by_day_and_pipe(rows: QuerySet[Usage], most: int) -> Iterator[dict[str, Any]]:
    """For files: what each pipe took on each day, the newest first."""
    sums = rows.values("day", "pipe_id", "pipe__name").annotate(**_sums()).order_by("-day", "pipe_id")[:most]
    for row in sums:
        yield row | {"pipe": row["pipe_id"], "name": row["pipe__name"]}


def _lines(rows: QuerySet[Usage], by: str) -> list[Line]:
    found = [(row.pop(by), Amount(**row)) for row in rows.order_by().values(by).annotate(**_sums())]
    whole = Amount(cpu_us=sum(amount.cpu_us for _, amount in found))
    lines = [Line(about, amount, amount.share_of(whole)) for about, amount in found]
    return sorted(lines, key=lambda line: (-line.amount.cpu_us, str(line.about)))


def _sums() -> dict[str, Sum]:
    return {
        "events": Sum("units", filter=_IN, default=0),
        "in_bytes": Sum("size_bytes", filter=_IN, default=0),
        "runs": Sum("units", filter=Q(kind="process"), default=0),
        "attempts": Sum("units", filter=_OUT, default=0),
        "out_bytes": Sum("size_bytes", filter=_OUT, default=0),
        "cpu_us": Sum("cpu_us", default=0),
        "refused": Sum("refused", default=0),
    }
