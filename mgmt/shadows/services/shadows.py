"""Services of shadow runs: start, stop and promote.

The Provisioner publishes each run as a control record, and the driver of the pipe's cell carries it out.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

import structlog
from django.db import IntegrityError, transaction
from django.db.models import F

from dataplane.spec import PipeSpec, SpecError, parse_pipe_spec, spec_to_builtins
from mgmt.audit.services import record
from mgmt.cells.policies import topic_shape
from mgmt.cells.queries.pipe_migrations import last_switch_after
from mgmt.errors import (
    InvalidValue,
    MigrationInProgressError,
    NothingToCompareError,
    PipeClosedError,
    QuotaExceededError,
    RevisionConflictError,
    ShadowInProgressError,
    UnchangedError,
)
from mgmt.ledger.queries.newest import start_of_newest
from mgmt.models import Pipe, PipeMigration, PipeRevision, Shadow, User
from mgmt.pipes.services.revisions import check_revision, publish_revision
from mgmt.shadows.queries import shadow_under_way

EVENTS: Final = 10_000
MOST_EVENTS: Final = 1_000_000
MOST_A_DAY: Final = 200  # of a tenant: each keeps a spec for 90 days, and its last report on the topic of signals
log = structlog.get_logger(__name__)


@dataclass(frozen=True, kw_only=True)
class ShadowRequest:
    """Events to run a draft over.

    follow:       live traffic from now on, until it is stopped; the other values do not apply
    events:       number of events, at most; None for EVENTS, or with a range for MOST_EVENTS
    since, until: range of ingest times; the end is exclusive. None for the newest events
    """

    follow: bool = False
    events: int | None = None
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True)
class CheckedShadow:
    """Run as it would start now: the draft, its cell, the revisions it refers to, and its range."""

    spec: PipeSpec
    cell_id: str
    revision: int
    based_on: int
    since: datetime
    until: datetime | None
    most_events: int


def check_shadow(
    *, pipe: Pipe, spec: Mapping[str, Any], based_on: int, request: ShadowRequest, now: datetime
) -> CheckedShadow:
    """Check a run as `start_shadow` does, and start nothing. Raises what `start_shadow` raises."""
    cell_id = _checked_cell(pipe)
    live = _compared_revision(pipe, based_on)
    checked = check_revision(pipe=pipe, spec=spec)
    if _spec_of(live) == checked:
        raise UnchangedError(
            f"The draft is the spec of revision {live.number}, which is live: nothing would differ. Change it first."
        )
    since, until, most_events = _range(pipe, request, now)
    other = shadow_under_way(pipe.tenant_id)
    if other is not None:
        raise ShadowInProgressError(
            f"Shadow run {other.id} of {other.pipe.name} is {other.state}, and a tenant has one at a time. Wait until "
            "it has ended, or stop it."
        )
    if Shadow.objects.filter(tenant_id=pipe.tenant_id, created_at__gt=now - timedelta(days=1)).count() >= MOST_A_DAY:
        raise QuotaExceededError(
            f"Your tenant has started {MOST_A_DAY} shadow runs within 24 hours, and may start no more. Try again later."
        )
    return CheckedShadow(checked, cell_id, live.number, based_on, since, until, most_events)


def start_shadow(
    *, pipe: Pipe, spec: Mapping[str, Any], based_on: int, request: ShadowRequest, by: User | None, now: datetime
) -> Shadow:
    """Start to run a draft over real events without sending. A tenant has one run under way at a time.

    based_on: number of the pipe's newest revision, which the draft changes
    Raises SpecError, InvalidValue, PipeClosedError, MigrationInProgressError, NothingToCompareError,
    RevisionConflictError, UnchangedError, ShadowInProgressError, QuotaExceededError, SandboxRefused.
    """
    checked = check_shadow(pipe=pipe, spec=spec, based_on=based_on, request=request, now=now)
    try:
        with transaction.atomic():
            shadow = Shadow.objects.create(
                tenant_id=pipe.tenant_id,
                pipe=pipe,
                cell_id=checked.cell_id,
                by=by,
                created_at=now,
                state_since=now,
                spec=spec_to_builtins(checked.spec),
                revision=checked.revision,
                based_on=checked.based_on,
                since=checked.since,
                until=checked.until,
                most_events=checked.most_events,
            )
            started = {name: getattr(shadow, name) for name in ("since", "until", "based_on", "most_events")}
            record(pipe=pipe, by=by, action="shadow.started", target=shadow, after=started)
    except IntegrityError as exc:  # another one was created since the check
        raise ShadowInProgressError("Another shadow run of your tenant has just been started.") from exc
    log.info(
        "shadow run started", tenant=pipe.tenant_id, pipe=pipe.id, shadow=shadow.id, revision=shadow.revision,
        follows=shadow.follows, most_events=shadow.most_events,
    )  # fmt: skip
    return shadow


@transaction.atomic
def stop_shadow(*, shadow: Shadow, now: datetime, by: User | None = None) -> bool:
    """Request the end of a run; what it has compared is kept. Returns False if it had ended or ends."""
    running = Shadow.objects.filter(id=shadow.id, state=Shadow.State.RUNNING)
    stopped = running.update(state=Shadow.State.STOPPING, state_since=now, version=F("version") + 1)
    shadow.refresh_from_db()
    if stopped:
        before, after = {"state": Shadow.State.RUNNING}, {"state": shadow.state}
        record(pipe=shadow.pipe, by=by, action="shadow.stopped", target=shadow, before=before, after=after)
        log.info("shadow run stopped", pipe=shadow.pipe_id, shadow=shadow.id)
    return stopped == 1


def promote_shadow(*, shadow: Shadow, author: User, now: datetime) -> PipeRevision:
    """Publish the draft of a run as the pipe's next revision, which ramps as usual, and stop the run.

    Raises RevisionConflictError if the pipe has a newer revision than the one that the run was compared with, and what
    `publish_revision` raises.
    """
    newest = shadow.pipe.revisions.latest("number").number
    if newest != shadow.based_on:
        raise RevisionConflictError(conflict_of(shadow, newest))
    with transaction.atomic():
        revision = publish_revision(
            pipe=shadow.pipe, spec=shadow.spec, based_on=shadow.based_on, author=author, must_change=True
        )
        Shadow.objects.filter(id=shadow.id).update(promoted=revision.number)
        record(
            pipe=shadow.pipe, by=author, action="shadow.promoted", target=shadow, after={"revision": revision.number}
        )
        stop_shadow(shadow=shadow, now=now, by=author)
    log.info("shadow run promoted", pipe=shadow.pipe_id, shadow=shadow.id, revision=revision.number)
    return revision


def conflict_of(shadow: Shadow, newest: int) -> str:
    """Return why a run cannot be promoted once the pipe has a newer revision."""
    return (
        f"Revision {newest} of {shadow.pipe.name} was published after this run began, which compared the draft with "
        f"revision {shadow.revision}. Apply your change to revision {newest}, and rehearse it again."
    )


def _checked_cell(pipe: Pipe) -> str:
    """Return the cell of a pipe whose events can be compared. Raises ServiceError."""
    if pipe.state == Pipe.State.CLOSED:
        raise PipeClosedError(f"{pipe.name} is closed. Open it again before you rehearse a draft.")
    if pipe.cell_id is None:
        raise NothingToCompareError(f"{pipe.name} is not placed on a cell yet, so it has no events.")
    if PipeMigration.objects.filter(pipe=pipe, state__in=PipeMigration.UNDER_WAY).exists():
        raise MigrationInProgressError(f"{pipe.name} is being migrated to another cell. Wait until that has ended.")
    return pipe.cell_id


def _compared_revision(pipe: Pipe, based_on: int) -> PipeRevision:
    """Return the live revision. Raises ServiceError if there is none, or a newer one than the draft's base."""
    newest = pipe.revisions.latest("number")
    if newest.number != based_on:
        raise RevisionConflictError(
            f"{pipe.name} has revision {newest.number}, and the draft is based on {based_on}. Read the newest one and "
            "apply your change to it."
        )
    if newest.state in (PipeRevision.State.REQUESTED, PipeRevision.State.RAMPING):
        raise NothingToCompareError(
            f"Revision {newest.number} of {pipe.name} is {newest.state}. Wait until it is live, or roll it back, so "
            "that the draft is compared with one revision."
        )
    live = pipe.revisions.filter(state=PipeRevision.State.LIVE).first()
    if live is None or live.published_offset is None:
        raise NothingToCompareError("No revision of this pipe is live yet. Publish one, then rehearse the next change.")
    return live


def _spec_of(live: PipeRevision) -> PipeSpec | None:
    """Return the spec of the live revision; None if this version of Penstock no longer accepts it."""
    try:
        return parse_pipe_spec(live.spec)
    except SpecError:
        return None


def _range(pipe: Pipe, request: ShadowRequest, now: datetime) -> tuple[datetime, datetime | None, int]:
    """Return since, until and the number of events, at most. Raises InvalidValue."""
    if request.follow:
        if request.events is not None or request.since is not None or request.until is not None:
            raise InvalidValue("follow", "needs no `events`, `since` or `until`: it follows live traffic from now on")
        return now, None, 0
    if request.events is not None and not 1 <= request.events <= MOST_EVENTS:
        raise InvalidValue("events", f"needs 1 to {MOST_EVENTS:,}")
    retained = timedelta(milliseconds=topic_shape().retention_ms["ingest"])
    if request.since is None and request.until is None:
        most = request.events or EVENTS
        since = start_of_newest(pipe.id, most, now=now, horizon=retained)
        moved = last_switch_after(pipe, since)
        return moved or since, now, most
    if request.since is None or request.until is None:
        raise InvalidValue("until" if request.until is None else "since", "needs a time: give both, or neither")
    _check_times(pipe, request.since, request.until, retained, now)
    return request.since, request.until, request.events or MOST_EVENTS


def _check_times(pipe: Pipe, since: datetime, until: datetime, retained: timedelta, now: datetime) -> None:
    if since >= until:
        raise InvalidValue("until", "needs a time after `since`")
    if until > now:
        raise InvalidValue("until", "needs a time in the past; to compare later events, follow live traffic")
    if until < now - retained:
        raise InvalidValue("until", f"needs a time within the last {retained.days} days: older events are deleted")
    if moved := last_switch_after(pipe, since):
        at = moved.isoformat(timespec="seconds")
        raise InvalidValue("since", f"needs a time after {at}: the pipe was migrated then, and left its earlier events")
