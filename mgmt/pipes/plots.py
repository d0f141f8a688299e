"""View model of a pipe's plots: throughput, lag and outcomes over one time axis, with marks of events. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.urls import reverse

from mgmt.cells.models.scaling import group_words
from mgmt.deliveries.presenters import alert_words
from mgmt.ledger.queries.bucket_range import MINUTE_S, BucketRange, bucket_at, start_of
from mgmt.ledger.queries.minutes import JUDGED, MinuteLoss, add_up
from mgmt.ledger.queries.timing import LagPoint
from mgmt.models import Alert, ControlAction, PipeRevision, Ramp, RampStep


@dataclass(frozen=True)
class PlotPoint:
    """One group of minutes of the plots.

    in_per_s, out_per_s: over the complete minutes of the group; None if it has none, or if the counts are not kept
    p50_us, p95_us:      from the event's time to the destination's answer, of messages of these minutes
    oldest_us:           age that the oldest message that waits now had at the end of the group
    outcomes:            messages of these minutes by outcome, in the order of JUDGED
    sealed:              all minutes with messages are sealed
    """

    at: datetime
    in_per_s: float | None
    out_per_s: float | None
    p50_us: int | None
    p95_us: int | None
    oldest_us: int | None
    outcomes: tuple[int, ...]
    sealed: bool


@dataclass(frozen=True)
class PlotMark:
    """Event on the time axis. `kind`: revision, ramp, scaling or alert. `link`: "" if no page has more about it."""

    at: datetime
    kind: str
    words: str
    link: str = ""


@dataclass(frozen=True)
class PlotFacts:
    """Rows that the plots are drawn from.

    lags:       end-to-end lag by the first minute of a group
    deliveries: delivered messages by destination and minute
    kept_since: first minute of which deliveries are kept
    oldest_at:  minute of the oldest message that waits now; None if none waits
    """

    lines: Mapping[int, MinuteLoss]
    lags: Mapping[int, LagPoint]
    deliveries: Mapping[str, Mapping[int, int]]
    kept_since: int
    oldest_at: datetime | None
    now: datetime


def plot_points(span: BucketRange, facts: PlotFacts) -> list[PlotPoint]:
    """Return one point for each group of minutes of the range."""
    return [_point(group, facts) for group in span.groups()]


def _point(group: range, facts: PlotFacts) -> PlotPoint:
    complete = range(group.start, min(group.stop, bucket_at(facts.now)))
    seconds = len(complete) * MINUTE_S
    accepted = sum(facts.lines[minute].accepted for minute in complete if minute in facts.lines)
    delivered = sum(minutes.get(minute, 0) for minutes in facts.deliveries.values() for minute in complete)
    lines = [facts.lines[minute] for minute in group if minute in facts.lines]
    total = add_up(lines).bins if lines else {}
    lag = facts.lags.get(group.start)
    return PlotPoint(
        at=start_of(group.start),
        in_per_s=accepted / seconds if seconds else None,
        out_per_s=delivered / seconds if seconds and group.start >= facts.kept_since else None,
        p50_us=lag.p50_us if lag else None,
        p95_us=lag.p95_us if lag else None,
        oldest_us=_age_us(facts.oldest_at, min(start_of(group.stop), facts.now)),
        outcomes=tuple(total.get(name, 0) for name in JUDGED),
        sealed=all(line.sealed_at for line in lines),
    )


def _age_us(oldest_at: datetime | None, at: datetime) -> int | None:
    return None if oldest_at is None or at <= oldest_at else (at - oldest_at) // timedelta(microseconds=1)


def revision_marks(pipe_id: str, rows: Iterable[PipeRevision]) -> list[PlotMark]:
    """Return a mark for each revision that went live."""
    link = reverse("console:revisions", args=[pipe_id])
    return [PlotMark(row.live_at, "revision", f"Revision {row.number} is live", link) for row in rows if row.live_at]


def ramp_marks(pipe_id: str, steps: Iterable[RampStep], since: datetime) -> list[PlotMark]:
    """Return a mark for each step that began at `since` or later, and for each rollback."""
    marks: dict[tuple[int, int], PlotMark] = {}
    for step in steps:
        ramp, number = step.ramp, step.ramp.revision.number
        link = reverse("console:ramp", args=[pipe_id, number])
        if step.began_at >= since:
            words = f"Ramp of revision {number}: {step.share} % of the keys"
            marks[number, step.share] = PlotMark(step.began_at, "ramp", words, link)
        if ramp.ended_at and ramp.outcome in (Ramp.Outcome.ROLLED_BACK, Ramp.Outcome.OVERTAKEN):
            words = f"Revision {number} was {'rolled back' if ramp.outcome == Ramp.Outcome.ROLLED_BACK else 'replaced'}"
            marks[number, 0] = PlotMark(ramp.ended_at, "ramp", words, link)
    return list(marks.values())


def scaling_marks(actions: Iterable[ControlAction]) -> list[PlotMark]:
    """Return a mark for each change of the number of lanes."""
    return [PlotMark(row.at, "scaling", _scaling_words(row.detail)) for row in actions]


def _scaling_words(detail: Mapping[str, Any]) -> str:
    units = group_words(str(detail.get("kind", "")))
    return f"Cell scaled: {detail.get('before')} to {detail.get('lanes')} {units}"


def alert_marks(pipe_id: str, alerts: Iterable[Alert], since: datetime, until: datetime) -> list[PlotMark]:
    """Return a mark for each alert that was opened or resolved in the period."""
    marks = []
    for row in alerts:
        link = reverse("console:alert", args=[pipe_id, row.id])
        words = alert_words(row, where=row.destination)
        for at, what in ((row.opened_at, "Alert"), (row.resolved_at, "Resolved")):
            if at and since <= at <= until:
                marks.append(PlotMark(at, "alert", f"{what}: {words}", link))
    return marks
