"""Watch for gaps in sequences that stay open: open, update and resolve the alert `sequence-gap` of their pipe."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, Final

from django.db.models import Count, Q, QuerySet
from msgspec import Struct

from controlplane.observer.rejecting import CLOSED
from dataplane.causes import Cause
from dataplane.ledger.units import parse_position
from mgmt.alerts.services.alerts import AlertReport, end_condition, open_alerts, report_condition
from mgmt.models import Alert, Pipe, SequenceBreakRow
from mgmt.pipes.queries.pipes import specs_in_use
from mgmt.sequences.queries import SequenceBreakLine, shown_breaks

MOST_LISTED: Final = 10  # gaps that an alert names; the page of the sequence has all
ARRIVED: Final = "all missing numbers have arrived"
OLD: Final = "no new gap for {minutes} minutes; numbers are still missing"
UNKNOWN: Final = "no gap of the last {minutes} minutes is open"
_OPEN: Final = Q(kind=SequenceBreakRow.Kind.GAP, missing__gt=0, is_tracked=True)


class SequenceGapPolicy(Struct, frozen=True):
    """Limits of the alert `sequence-gap`.

    settle_min: minutes for which a missing number may be late
    window_min: age in minutes at which a gap is no longer looked at
    """

    settle_min: int = 5
    window_min: int = 60


def watch_sequence_gaps(now: datetime, policy: SequenceGapPolicy) -> int:
    """Check the recent gaps of all pipes. Returns the number of pipes with an alert.

    Safe to run twice: an alert is opened once, and names the gaps of the window.
    """
    open_ = {one.pipe_id: one for one in open_alerts().filter(cause=Cause.SEQUENCE_GAP).select_related("pipe")}
    recent = _recent(now, policy)
    counts = dict(recent.order_by().values_list("pipe").annotate(n=Count("pk")))
    for pipe_id in sorted(counts):
        listed = recent.filter(pipe=pipe_id).select_related("pipe").order_by("-at", "-position")[:MOST_LISTED]
        _report(listed, counts[pipe_id], policy, now)
    for pipe_id in sorted(set(open_) - set(counts)):
        if (words := _resolution(open_[pipe_id], policy, now)) is None:
            continue
        end_condition(pipe_id=pipe_id, destination="", cause=Cause.SEQUENCE_GAP, resolution=words, now=now)
    return len(counts)


def _resolution(alert: Alert, policy: SequenceGapPolicy, now: datetime) -> str | None:
    """Return why an alert ends, in words; None while a younger gap is open, which may keep it open."""
    if alert.pipe.state == Pipe.State.CLOSED:
        return CLOSED
    gaps = SequenceBreakRow.objects.filter(pipe=alert.pipe_id, kind=SequenceBreakRow.Kind.GAP)
    if gaps.filter(_OPEN, at__gt=now - timedelta(minutes=policy.settle_min)).exists():
        return None
    named = [parse_position(one["position"]) for one in alert.details["gaps"]]
    missing = list(gaps.filter(position__in=named).values_list("missing", flat=True))
    if any(missing):
        return OLD.format(minutes=policy.window_min)
    return ARRIVED if len(missing) == len(named) else UNKNOWN.format(minutes=policy.window_min)


def _recent(now: datetime, policy: SequenceGapPolicy) -> QuerySet[SequenceBreakRow]:
    """Return the gaps with missing numbers that are neither too young nor too old."""
    begin, end = (now - timedelta(minutes=minutes) for minutes in (policy.window_min, policy.settle_min))
    gaps = SequenceBreakRow.objects.filter(_OPEN, at__range=(begin, end))
    return gaps.exclude(pipe__state=Pipe.State.CLOSED)


def _report(listed: Iterable[SequenceBreakRow], gaps: int, policy: SequenceGapPolicy, now: datetime) -> None:
    rows = list(listed)
    if not rows:  # the numbers arrived since the gaps were counted
        return
    pipe = rows[0].pipe
    details = {
        "window_min": policy.window_min,
        "gaps": [_described(line) for line in shown_breaks(pipe, rows, specs_in_use(pipe))],
        "more": max(0, gaps - len(rows)),
    }
    report_condition(report=AlertReport(pipe.id, "", Cause.SEQUENCE_GAP, gaps, details, {}), now=now)


def _described(line: SequenceBreakLine) -> dict[str, Any]:
    row = line.row
    return {
        "source": row.source,
        "key": line.key,
        "summary": line.words,
        "missing": row.missing,
        "missing_numbers": line.missing_words,
        "previous": line.previous,
        "number": line.number,
        "position": line.position,
        "bucket": row.bucket,
        "at": row.at.isoformat(),
    }
