"""Services of backfills: a new destination gets the earlier events that its `from` names, by one replay."""

from contextlib import suppress
from datetime import datetime, timedelta
from typing import Final

import structlog
from django.db import transaction
from django.db.models.fields.json import KeyTransform

from dataplane.spec import (
    HttpDestination,
    SpecError,
    TopicDestination,
    beginning_at,
    beginning_of,
    destination_of,
)
from mgmt.audit.services import record
from mgmt.cells.queries.pipe_migrations import last_switch_after
from mgmt.errors import (
    BackfillStartedError,
    InvalidValue,
    NothingToReplayError,
    PipeClosedError,
    PipePausedError,
    ReplayInProgressError,
    ServiceError,
)
from mgmt.models import Backfill, Destination, Pipe, PipeRevision, Ramp, Replay, User
from mgmt.quotas.queries import quotas_for
from mgmt.replays.services.replays import ReplayRequest, check_replay, start_replay
from mgmt.replays.unsent import unsent_revisions

# After a revision has become live. All ingest replicas stamp with it by then: they hold that record before the revision
# becomes live, and a request that began earlier is written within 10 s. The rest is for clocks that differ.
SETTLED: Final = timedelta(seconds=60)
REASON_CHARS: Final = 300
log = structlog.get_logger(__name__)


class DestinationNotActiveError(ServiceError):
    """The destination is paused or suspended: a replay to it would wait."""


def request_backfills(*, revision: PipeRevision, before: PipeRevision | None, now: datetime) -> None:
    """Request the backfills of a revision that has just become live, in the transaction that made it live.

    before: the revision that was live until now

    A destination is new if that revision has none of its name. Without earlier events, as in a new pipe, there is
    nothing to request.
    """
    known = before.spec["destinations"] if before is not None else {}
    for name, config in revision.spec["destinations"].items():
        beginning = beginning_of(destination_of(config))
        if not beginning or name in known:
            continue
        if unsent_revisions(_earlier(revision.pipe_id, name, revision.number), _runs_as(revision.pipe_id)):
            Backfill.objects.create(
                pipe_id=revision.pipe_id,
                destination=name,
                revision=revision.number,
                beginning=beginning,
                created_at=now,
            )


def start_backfills(*, now: datetime) -> int:
    """Start the replays of waiting backfills, or store what they wait for. Returns the number started or ended.

    Safe to run twice: a backfill is locked while its replay is created, and a tenant has one replay at a time. So a
    tenant's backfills are examined until one finds a replay under way; those after it get its reason.
    """
    rows = Backfill.objects.filter(replay=None, ended_at=None, created_at__lte=now - SETTLED)
    advanced, examined, busy = 0, set[str](), set[str]()
    for id_, tenant in rows.order_by("created_at", "id").values_list("id", "pipe__tenant"):
        if tenant in busy:
            continue
        try:
            advanced += _advance(id_, now)
            examined.add(id_)
        except ReplayInProgressError as exc:
            busy.add(tenant)
            reason = str(exc)[:REASON_CHARS]
            # Without a join, so that Postgres checks a row that was cancelled meanwhile again, and leaves it.
            theirs = rows.filter(pipe__in=Pipe.objects.filter(tenant=tenant))
            theirs.exclude(id__in=examined).exclude(reason=reason).update(reason=reason)
    return advanced


@transaction.atomic
def cancel_backfill(*, backfill: Backfill, by: User, now: datetime) -> bool:
    """End a waiting backfill without a replay. Returns False if it has ended without one already.

    Raises BackfillStartedError if it has a replay.
    """
    _lock(backfill)
    if not backfill.is_waiting:
        return False
    _move(backfill, "backfill.cancelled", by, ended_at=now)
    return True


@transaction.atomic
def retry_backfill(*, backfill: Backfill, by: User, now: datetime) -> bool:
    """Make a backfill that has ended without a replay wait for one again. Returns False if it waits already.

    Raises BackfillStartedError if it has a replay; PipeClosedError, NothingToReplayError, MigrationInProgressError if
    it could get none now, for a reason that does not pass by waiting.
    """
    _lock(backfill)
    if backfill.is_waiting:
        return False
    with suppress(DestinationNotActiveError, PipePausedError, ReplayInProgressError, InvalidValue):
        check_replay(pipe=backfill.pipe, request=_request(backfill, now), by=None, now=now)
    _move(backfill, "backfill.retried", by, ended_at=None)
    return True


def _lock(backfill: Backfill) -> None:
    """Lock a backfill without a replay, and read it again. Raises BackfillStartedError.

    `_advance` skips a locked row and holds the lock while it creates the replay, so either this change is made or the
    replay is created. The lock also keeps the state before, which the audit entry names.
    """
    backfill.refresh_from_db(from_queryset=Backfill.objects.select_for_update())
    if (replay := backfill.replay) is not None:
        found = f"The backfill of {backfill.destination} has replay {replay.id}, which is {replay.state}."
        if replay.is_under_way:
            raise BackfillStartedError(f"{found} Pause, resume or abort the replay instead.")
        raise BackfillStartedError(f"{found} Repeat what failed in it, or start a replay with the same revisions.")


def _move(backfill: Backfill, action: str, by: User, *, ended_at: datetime | None) -> None:
    before = {"state": backfill.state}
    backfill.ended_at, backfill.reason = ended_at, ""
    backfill.save(update_fields=["ended_at", "reason"])
    after = {"state": backfill.state}
    record(pipe=backfill.pipe, by=by, action=action, target=backfill, before=before, after=after)
    log.info(action.replace(".", " "), pipe=backfill.pipe_id, destination=backfill.destination, **after)


@transaction.atomic
def _advance(id_: str, now: datetime) -> bool:
    """Start a backfill, end it without a replay, or note what it waits for. Returns False if it waits.

    Raises ReplayInProgressError if the tenant has a replay under way.
    """
    rows = Backfill.objects.select_for_update(of=("self",), skip_locked=True).select_related("pipe")
    row = rows.filter(id=id_, replay=None, ended_at=None).first()
    if row is None:
        return False
    ended_at = None
    try:
        row.replay = start_replay(pipe=row.pipe, request=_request(row, now), by=None, now=now)
        reason = ""
    except (PipeClosedError, NothingToReplayError) as exc:
        reason, ended_at = str(exc), now
    except ReplayInProgressError:
        raise
    except ServiceError as exc:
        reason = str(exc)
    except InvalidValue as exc:
        reason = exc.reason
    if row.reason != reason[:REASON_CHARS] or row.replay or ended_at:
        row.reason, row.ended_at = reason[:REASON_CHARS], ended_at
        row.save(update_fields=["replay", "reason", "ended_at"])
    if row.replay or ended_at:
        log.info(
            "backfill ended" if ended_at else "backfill started",
            pipe=row.pipe_id,
            destination=row.destination,
            replay=row.replay_id,
            reason=reason,
        )
    return not row.is_waiting


def _request(row: Backfill, now: datetime) -> ReplayRequest:
    """Return the replay to start.

    Raises NothingToReplayError if there will be none, DestinationNotActiveError if it has to wait.
    """
    live = row.pipe.revisions.filter(state=PipeRevision.State.LIVE).first()
    config = live.spec["destinations"].get(row.destination) if live is not None else None
    try:
        to = None if config is None else destination_of(config)
    except SpecError as exc:
        raise NothingToReplayError(f"This release does not accept {row.destination}: {exc}") from exc
    if not isinstance(to, HttpDestination | TopicDestination):
        raise NothingToReplayError(f"The live revision has no destination {row.destination} of type http or topic.")
    state = row.pipe.destinations.values_list("state", flat=True).get(name=row.destination)
    if state != Destination.State.ACTIVE:
        raise DestinationNotActiveError(f"The destination is {state}.")
    since = _since(row)
    earlier = _earlier(row.pipe_id, row.destination, row.revision)
    unsent = set(unsent_revisions(earlier, _runs_as(row.pipe_id))) - _backfilled(row, since)
    if not unsent:
        raise NothingToReplayError(f"{row.destination} has all events accepted since then.")
    # Later events have the revision that brought the destination, or a newer one: a replay would find none.
    if since >= min(now, row.created_at + SETTLED):
        raise NothingToReplayError(
            f"{row.destination} gets all events accepted since {since:%Y-%m-%d %H:%M} UTC without a backfill."
        )
    return ReplayRequest(
        since=since,
        until=now,
        destinations=[row.destination],
        revisions=sorted(unsent),
        rate_per_s=float(quotas_for(row.pipe.tenant_id).replay_units_per_s),
        of_backfill=True,
    )


def _since(row: Backfill) -> datetime:
    """Return the time of the first events, of which retention may have deleted some.

    The pipe's cell has none from before the pipe was migrated to it.
    """
    beginning = beginning_at(row.beginning)
    since = row.pipe.created_at if beginning is None else max(row.pipe.created_at, beginning)
    return last_switch_after(row.pipe, since) or since


def _backfilled(row: Backfill, since: datetime) -> set[int]:
    """Return the revisions whose events an earlier backfill of the destination has sent, back to the same time.

    The destination was removed after it, and is back.
    """
    done = Replay.objects.filter(
        backfill__pipe=row.pipe_id, backfill__destination=row.destination, state=Replay.State.DONE, since__lte=since
    )
    return {number for numbers in done.values_list("revisions", flat=True) for number in numbers}


def _earlier(pipe_id: str, name: str, before: int) -> dict[int, bool]:
    """Return the revisions with a lower number than `before`, and True for those with a destination of this name."""
    rows = PipeRevision.objects.filter(pipe=pipe_id, number__lt=before).order_by()
    config = KeyTransform(name, KeyTransform("destinations", "spec"))
    return {number: to is not None for number, to in rows.annotate(to=config).values_list("number", "to")}


def _runs_as(pipe_id: str) -> dict[int, int]:
    """Return the pipe's rolled-back revisions and the revision that runs their events since then."""
    ramps = Ramp.objects.filter(revision__pipe=pipe_id, revision__state=PipeRevision.State.FAILED)
    return dict(ramps.values_list("revision__number", "stable__number"))
