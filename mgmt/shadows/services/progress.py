"""Services that store the driver's reports of shadow runs, and end the runs that nobody ends."""

from datetime import UTC, datetime, timedelta
from typing import Any, Final

import structlog
from django.db import transaction
from django.db.models import F, Q, QuerySet

from dataplane.tables.shadows import UNIT_KINDS, ShadowProgress, ShadowSample
from mgmt.models import Pipe, PipeMigration, Shadow
from mgmt.shadows.models import KIND_NAMES

UNANSWERED_FOR: Final = timedelta(minutes=5)  # after a request to stop; the cell may have no driver
LONGEST_RUN: Final = timedelta(days=7)  # until then it blocks other runs of the tenant
# Columns that a report changes: the spec may have hundreds of KB, and a run is reported every two seconds.
_REPORTED: Final = (
    "progress_at", "started_at", "reached", "ends", "read", "events", "units", "fields", "rejected", "samples",
    "cost_events", "live_cpu_us", "draft_cpu_us", "compared_until", "error", "state", "state_since", "finished_at",
    "version",
)  # fmt: skip
log = structlog.get_logger(__name__)


@transaction.atomic
def note_shadow_progress(*, progress: ShadowProgress, now: datetime) -> None:
    """Store the driver's report. Safe to repeat, also after the end: a run that has ended does not change."""
    rows = Shadow.objects.select_for_update().defer("spec")
    row = rows.filter(id=progress.shadow, state__in=Shadow.UNDER_WAY).first()
    if row is None:
        return
    row.progress_at = _time_of(progress.at_us)
    if progress.ends:  # until then the driver waits, for example for a table of the draft
        row.started_at = row.started_at or row.progress_at
    row.reached, row.ends = progress.reached, progress.ends
    row.read, row.events = progress.read, progress.events
    row.units = {
        name: {KIND_NAMES[kind]: kinds.get(kind, 0) for kind in UNIT_KINDS} for name, kinds in progress.units.items()
    }
    row.fields = {name: _storable_keys(counts) for name, counts in progress.fields.items()}
    row.rejected = _storable_keys(progress.rejected)
    row.samples = [_sample(one) for one in progress.samples]
    row.cost_events = progress.cost_events
    row.live_cpu_us, row.draft_cpu_us = progress.live_cpu_us, progress.shadow_cpu_us
    row.compared_until = _time_of(progress.compared_until_us) if progress.compared_until_us else None
    row.error = _text(progress.error)[:300]
    if progress.done:
        _finish(row, now)
    row.save(update_fields=_REPORTED)


def end_unanswered_shadows(*, now: datetime) -> int:
    """End the runs whose stop no driver has confirmed for some minutes. Returns their number."""
    rows = Shadow.objects.filter(state=Shadow.State.STOPPING, state_since__lt=now - UNANSWERED_FOR)
    return rows.update(state=Shadow.State.STOPPED, state_since=now, finished_at=now, version=F("version") + 1)


def stop_unattended_shadows(*, now: datetime) -> int:
    """Stop the runs that are a week old, and those whose pipe is closed or waits to be migrated. Returns their number.

    Safe to run twice: each is stopped by a conditional update.
    """
    moving = PipeMigration.objects.filter(state=PipeMigration.State.REQUESTED).values("pipe")
    running = Shadow.objects.filter(state=Shadow.State.RUNNING)
    return (
        _stop(running.filter(pipe__state=Pipe.State.CLOSED), "the pipe was closed", now)
        + _stop(running.filter(pipe__in=moving), "the pipe is being migrated to another cell", now)
        + _stop(running.filter(Q(created_at__lt=now - LONGEST_RUN)), f"it ran for {LONGEST_RUN.days} days", now)
    )


def _stop(rows: QuerySet[Shadow], why: str, now: datetime) -> int:
    return rows.update(state=Shadow.State.STOPPING, state_since=now, why_stopped=why, version=F("version") + 1)


def _finish(row: Shadow, now: datetime) -> None:
    """Set the state of a run that has ended. One that has compared all of its events is done, whatever it notes."""
    if row.is_complete:
        row.state = Shadow.State.DONE
    elif row.state == Shadow.State.STOPPING:
        row.state = Shadow.State.STOPPED
    else:
        row.state = Shadow.State.FAILED if row.error else Shadow.State.DONE
    row.state_since = row.finished_at = now
    row.version += 1  # published once more, as ended
    log.info("shadow run ended", pipe=row.pipe_id, shadow=row.id, state=row.state, events=row.events)


def _sample(one: ShadowSample) -> dict[str, Any]:
    return {
        "kind": KIND_NAMES[one.kind],
        "destination": one.destination,
        "position": one.position,
        "child": one.child,
        "reason": _text(one.reason),
        "fields": [
            {"path": _text(field.path), "live": _value(field.live), "draft": _value(field.shadow)}
            for field in one.fields
        ],
    }


def _storable_keys(counts: dict[str, int]) -> dict[str, int]:
    return {_text(name): count for name, count in counts.items()}


def _value(value: str | None) -> str | None:
    return None if value is None else _text(value)


def _text(text: str) -> str:
    """Return the text without U+0000, which Postgres cannot store."""
    return text.replace("\x00", "")


def _time_of(us: int) -> datetime:
    return datetime.fromtimestamp(us / 1_000_000, UTC)
