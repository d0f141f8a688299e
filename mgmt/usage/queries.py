"""Usage by pipe, day, tenant and cell: sums of rows, without estimates."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, Final

from django.db.models import Q, QuerySet, Sum

from mgmt.models import Pipe, Tenant, Usage

RANGES: Final[Mapping[str, int]] = {"7d": 7, "30d": 30, "90d": 90}
DEFAULT_RANGE: Final = "7d"
_IN = Q(kind="ingest")
_OUT = Q(kind__startswith="transmit") | Q(kind="replay")  # a replay writes the copies for topics itself


@dataclass(frozen=True)
class DayRange:
    """Whole days in UTC, both included; the last one is not over. `name` is the value of the page's selector."""

    name: str
    first: date
    last: date


@dataclass(frozen=True)
class UsageTotals:
    """Accepted events, sent requests, and the CPU time used for them.

    events, in_bytes:    accepted at ingest
    runs:                messages that process lanes processed, including repeats
    attempts, out_bytes: delivery attempts, including failed ones, and the bytes of their bodies
    cpu_us:              CPU time of ingest, all lanes and the tasks of replays, in microseconds
    refused:             events over the tenant's quota; a request refused before it was read counts as one
    """

    events: int = 0
    in_bytes: int = 0
    runs: int = 0
    attempts: int = 0
    out_bytes: int = 0
    cpu_us: int = 0
    refused: int = 0

    def share_of(self, whole: "UsageTotals") -> float | None:
        """Return the share (0 to 1) of the whole's CPU time; None if the whole is 0."""
        return self.cpu_us / whole.cpu_us if whole.cpu_us else None


@dataclass(frozen=True)
class UsageLine:
    """Line of a list. `about` is a day, a pipe or a tenant; `share` is its part (0 to 1) of the list's CPU time."""

    about: Any
    amount: UsageTotals
    share: float | None


@dataclass(frozen=True)
class GroupUsage:
    """CPU time of the processes of one kind in a cell, and the part of it that belongs to no pipe."""

    cell: str
    kind: str
    cpu_us: int
    idle_us: int

    @property
    def idle_share(self) -> float | None:
        """Share (0 to 1) of the idle time; None if they used nothing."""
        return self.idle_us / self.cpu_us if self.cpu_us else None


def days_until(name: str, today: date) -> DayRange:
    """Return the named range up to today; an unknown name means the default."""
    known = name if name in RANGES else DEFAULT_RANGE
    return DayRange(known, today - timedelta(days=RANGES[known] - 1), today)


def rows_of(days: DayRange, *, tenant: Tenant | None = None, pipe: Pipe | None = None) -> QuerySet[Usage]:
    """Return the rows of a range: of one pipe, of one tenant's pipes, or all, including rows without a pipe."""
    rows = Usage.objects.filter(day__range=(days.first, days.last))
    if pipe is not None:
        return rows.filter(pipe=pipe)
    return rows.filter(pipe__tenant=tenant) if tenant is not None else rows


def total_of(rows: QuerySet[Usage]) -> UsageTotals:
    """Return the sum of the rows."""
    return UsageTotals(**rows.aggregate(**_sums()))


def by_day(rows: QuerySet[Usage]) -> list[UsageLine]:
    """Return a line for each day with usage, newest first."""
    return sorted(_lines(rows, "day"), key=lambda line: line.about, reverse=True)


def by_pipe(rows: QuerySet[Usage]) -> list[UsageLine]:
    """Return a line for each pipe of a tenant's rows, most CPU time first; `about` is the pipe."""
    lines = _lines(rows, "pipe_id")
    pipes = Pipe.objects.in_bulk([line.about for line in lines])
    return [UsageLine(pipes[line.about], line.amount, line.share) for line in lines]


def by_tenant(rows: QuerySet[Usage]) -> list[UsageLine]:
    """Return a line for each tenant, most CPU time first; `about` is its name, "" for usage without a pipe."""
    lines = _lines(rows, "pipe__tenant_id")
    names = dict(Tenant.objects.values_list("id", "name"))
    return [UsageLine(names.get(line.about, ""), line.amount, line.share) for line in lines]


def by_group(rows: QuerySet[Usage]) -> list[GroupUsage]:
    """Return a line for each kind of process in each cell; cell "" is that of ingest, which serves all cells."""
    sums = rows.order_by("cell", "kind").values_list("cell", "kind")
    used, idle = Sum("cpu_us"), Sum("cpu_us", filter=Q(pipe=None), default=0)
    return [GroupUsage(*row) for row in sums.annotate(used_us=used, idle_us=idle)]


def by_day_and_pipe(rows: QuerySet[Usage], most: int) -> Iterator[dict[str, Any]]:
    """Yield up to `most` sums by day and pipe, newest day first, for export to files."""
    sums = rows.values("day", "pipe_id", "pipe__name").annotate(**_sums()).order_by("-day", "pipe_id")[:most]
    for row in sums:
        yield row | {"pipe": row["pipe_id"], "name": row["pipe__name"]}


def _lines(rows: QuerySet[Usage], by: str) -> list[UsageLine]:
    found = [(row.pop(by), UsageTotals(**row)) for row in rows.order_by().values(by).annotate(**_sums())]
    whole = UsageTotals(cpu_us=sum(amount.cpu_us for _, amount in found))
    lines = [UsageLine(about, amount, amount.share_of(whole)) for about, amount in found]
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
