"""Store the rejected events that ingest reports, in the transaction that moves the offset, so that each counts once."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

from django.db.models import Count

from controlplane.observer.columns import execute_in_columns
from controlplane.observer.merge import clean
from dataplane.ledger.rejections import OTHER, RejectionReport, RejectionSample
from mgmt.ledger.queries.bucket_range import start_of
from mgmt.models import Pipe, Rejection
from mgmt.rejections.models import MOST_OF_TENANT, MOST_SAMPLES

_Kind = tuple[str, str, str, str, str, str]  # the fields of the constraint `one_row_per_rejection`
_NAMES: Final = ("pipe_id", "source", "event_type", "code", "pointer", "sender")
_ADD: Final = """
INSERT INTO mgmt_rejectionminute AS known (rejection_id, "minute", events)
SELECT * FROM unnest(%s::bigint[], %s::int[], %s::bigint[])
ON CONFLICT (rejection_id, "minute") DO UPDATE SET events = known.events + EXCLUDED.events
"""


def add_rejections(reports: Iterable[RejectionReport]) -> None:
    """Add reports to the rows of their kinds. Reports of unknown pipes are skipped."""
    found = list(reports)
    if not found:
        return
    kinds_of = [(_kind_of(one), one) for one in found]
    tenants = dict(Pipe.objects.filter(id__in={kind[0] for kind, _ in kinds_of}).values_list("id", "tenant_id"))
    kept = [(kind, one) for kind, one in kinds_of if kind[0] in tenants]
    rows = _rows(dict(kept), tenants)
    counts: Counter[tuple[int, int]] = Counter()
    news: dict[int, list[RejectionReport]] = {}
    for kind, one in kept:
        row = rows[kind]
        counts[row.pk, one.minute] += one.events
        news.setdefault(row.pk, []).append(one)
    execute_in_columns(_ADD, [(*key, counts[key]) for key in sorted(counts)])
    _update(news)


def _kind_of(report: RejectionReport) -> _Kind:
    return (
        clean(report.pipe, 32),
        clean(report.source, 40),
        clean(report.event_type, 100),
        clean(report.code, 40),
        clean(report.pointer, 200),
        clean(report.sender, 16),
    )


def _rows(wanted: Mapping[_Kind, RejectionReport], tenants: Mapping[str, str]) -> dict[_Kind, Rejection]:
    """Return the row of each kind, made if its tenant has room; else the one in which the rest of its source counts."""
    known = _known(wanted)
    missing = [kind for kind in wanted if kind not in known]
    if not missing:
        return known
    concerned = {tenants[kind[0]] for kind in missing}
    rows = Rejection.objects.filter(pipe__tenant__in=concerned).order_by().values_list("pipe__tenant")
    used = Counter(dict(rows.annotate(n=Count("pk"))))
    stands_for: dict[_Kind, _Kind] = {}
    for kind in sorted(missing):
        tenant = tenants[kind[0]]
        if used[tenant] < MOST_OF_TENANT:
            used[tenant] += 1
            stands_for[kind] = kind
        else:
            stands_for[kind] = (kind[0], kind[1], OTHER, kind[3], "", OTHER)
    fresh = {made: wanted[kind] for kind, made in stands_for.items()}
    Rejection.objects.bulk_create([_fresh(made, fresh[made]) for made in sorted(fresh)], ignore_conflicts=True)
    made = _known(fresh)
    return known | {kind: made[of] for kind, of in stands_for.items()}


def _known(kinds: Iterable[_Kind]) -> dict[_Kind, Rejection]:
    wanted = set(kinds)
    rows = Rejection.objects.filter(pipe__in={kind[0] for kind in wanted}, code__in={kind[3] for kind in wanted})
    found = {tuple(getattr(row, name) for name in _NAMES): row for row in rows.defer("samples")}
    return {kind: found[kind] for kind in wanted if kind in found}


def _fresh(kind: _Kind, report: RejectionReport) -> Rejection:
    at = start_of(report.minute)
    named: dict[str, Any] = dict(zip(_NAMES, kind, strict=True))
    return Rejection(**named, detail=clean(report.detail, 300), first_at=at, last_at=at)


def _update(news: Mapping[int, list[RejectionReport]]) -> None:
    """Set the newest detail, samples and time of the rows, which are locked in a fixed order."""
    rows = list(Rejection.objects.filter(pk__in=news).order_by("pk").select_for_update(no_key=True))
    for row in rows:
        reports = sorted(news[row.pk], key=lambda one: one.minute)
        row.last_at = max(row.last_at, start_of(reports[-1].minute))
        row.first_at = min(row.first_at, start_of(reports[0].minute))
        row.detail = clean(reports[-1].detail, 300)
        fresh = [_sample(one) for report in reports for one in report.samples]
        row.samples = [*row.samples, *fresh][-MOST_SAMPLES:]
    Rejection.objects.bulk_update(rows, ["last_at", "first_at", "detail", "samples"])


def _sample(one: RejectionSample) -> dict[str, Any]:
    return {"at_us": one.at_us, "size_bytes": one.size_bytes, "body": one.body.replace("\x00", "")}
