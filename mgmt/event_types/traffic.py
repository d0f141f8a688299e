"""Traffic of schema versions: events that ingest accepted and rejected, by version and by source."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final, NamedTuple

from django.db.models import QuerySet, Sum

from mgmt.models import Source, Subject, VersionHour

HOUR_S: Final = 3_600
RANGES_H: Final[Mapping[str, int]] = {"1h": 1, "24h": 24, "7d": 7 * 24}
DEFAULT_RANGE: Final = "24h"


class EventTally(NamedTuple):
    """Events that fit a version, and those that did not."""

    accepted: int = 0
    rejected: int = 0

    @property
    def rejected_share(self) -> float | None:
        """Share (0 to 1) of the events that were rejected; None without events."""
        of = self.accepted + self.rejected
        return self.rejected / of if of else None


class TrafficLine(NamedTuple):
    """Traffic of one version from one source."""

    source: Source
    number: int
    tally: EventTally


def traffic_of(subject: Subject, now: datetime, name: str = DEFAULT_RANGE) -> list[TrafficLine]:
    """Return the traffic of a subject's versions by source, newest version first; sources without any are left out.

    name: key of RANGES_H. A range ends with the current hour, which is not over.
    """
    rows = _within(now, name).filter(version__subject=subject).order_by("-version__number", "source_id")
    sums = list(rows.values_list("source_id", "version__number").annotate(Sum("accepted"), Sum("rejected")))
    sources = Source.objects.select_related("pipe").in_bulk({source for source, *_ in sums})
    return [TrafficLine(sources[source], number, EventTally(*counts)) for source, number, *counts in sums]


def tallies_of_subjects(tenant_id: str, now: datetime) -> dict[str, EventTally]:
    """Return the traffic of each of the tenant's subjects that had any in the default range, by id."""
    rows = _within(now, DEFAULT_RANGE).filter(version__subject__tenant=tenant_id).order_by()
    sums = rows.values_list("version__subject_id").annotate(Sum("accepted"), Sum("rejected"))
    return {subject: EventTally(*counts) for subject, *counts in sums}


def by_version(lines: Iterable[TrafficLine]) -> dict[int, EventTally]:
    """Return the traffic of each version over all sources, by number."""
    return _sums((line.number, line.tally) for line in lines)


def by_source(lines: Iterable[TrafficLine]) -> dict[int, EventTally]:
    """Return the traffic of each source over all versions, by primary key."""
    return _sums((line.source.pk, line.tally) for line in lines)


def _sums(tallies: Iterable[tuple[int, EventTally]]) -> dict[int, EventTally]:
    found: dict[int, EventTally] = {}
    for key, (accepted, rejected) in tallies:
        known = found.get(key, EventTally())
        found[key] = EventTally(known.accepted + accepted, known.rejected + rejected)
    return found


def _within(now: datetime, name: str) -> QuerySet[VersionHour]:
    last = int(now.timestamp()) // HOUR_S
    return VersionHour.objects.filter(hour__gt=last - RANGES_H[name], hour__lte=last)
