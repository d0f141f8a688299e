"""Services of replays: start, pause, resume and abort.

The Provisioner publishes each replay as a control record, and the driver of the pipe's cell carries it out.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import msgspec
import structlog
from django.db import IntegrityError, transaction
from django.db.models import F

from dataplane.plan.expression_fields import expression_problem
from dataplane.record_limits import CLIENT_MAX_BYTES
from dataplane.schemas.shapes import ANY, either
from dataplane.spec import (
    DestinationSpec,
    PipeSpec,
    RemoteDestination,
    TopicDestination,
    keeps_newest,
    parse_pipe_spec,
)
from mgmt import sandbox
from mgmt.audit.services import record
from mgmt.cells.queries.pipe_migrations import last_switch_after
from mgmt.errors import (
    InvalidValue,
    MigrationInProgressError,
    NothingToReplayError,
    PipeClosedError,
    PipePausedError,
    ReplayInProgressError,
)
from mgmt.event_types.queries import event_shapes_of
from mgmt.ids import storable
from mgmt.ledger.queries.bucket_range import bucket_at
from mgmt.models import Destination, Pipe, PipeMigration, PipeRevision, Replay, User
from mgmt.quotas.queries import quotas_for

RATE_PER_S: Final = 50.0
LEAST_RATE_PER_S: Final = 1.0
LONGEST: Final = timedelta(days=7)
MOST_WHERE_CHARS: Final = 2_048
MOST_KEYS: Final = 1_000
MOST_KEY_CHARS: Final = 256
MOST_IDS: Final = 10_000
MOST_ID_CHARS: Final = 64
MOST_REVISIONS: Final = 10_000
MOST_SELECTION_BYTES: Final = CLIENT_MAX_BYTES // 2  # of `where`, `keys`, `ids` and `revisions` in the record, as JSON
_ACTIONS: Final = {
    Replay.State.PAUSED: "replay.paused",
    Replay.State.RUNNING: "replay.resumed",
    Replay.State.ABORTING: "replay.aborted",
}
log = structlog.get_logger(__name__)


@dataclass(frozen=True, kw_only=True)
class ReplayRequest:
    """Events to replay, and how.

    since, until: range of ingest times; the end is exclusive
    revision:     None for the live one
    destinations: empty for all active ones of the revision that can be replayed to
    where:        expression over `body` and `meta`, as of a filter step; "" for all events
    keys, ids:    only events with one of these keys, or message ids; empty for all
    revisions:    only events that ingest stamped with one of these revisions; empty for all. A range that they limit
                  may be longer than LONGEST
    rate_per_s:   units per second, at most, over all destinations
    rehearsal:    count only, and send nothing
    of_backfill:  the replay of a backfill, for which a requested migration of the pipe waits
    """

    since: datetime
    until: datetime
    revision: int | None = None
    destinations: Sequence[str] = ()
    where: str = ""
    keys: Sequence[str] = ()
    ids: Sequence[str] = ()
    revisions: Sequence[int] = ()
    rate_per_s: float = RATE_PER_S
    rehearsal: bool = False
    of_backfill: bool = False


@dataclass(frozen=True)
class CheckedReplay:
    """Values that a request leaves open, as they are now: cell, number of the revision, names of the destinations."""

    cell_id: str
    revision: int
    destinations: list[str]


def check_replay(*, pipe: Pipe, request: ReplayRequest, by: User | None, now: datetime) -> CheckedReplay:
    """Check a request as `start_replay` does, and start nothing. Raises what `start_replay` raises."""
    cell_id = _checked_cell(pipe, request)
    _check_range(pipe, request, now)
    _check_selection(request)
    _check_rate(pipe, request)
    revision = _revision(pipe, request.revision)
    spec = parse_pipe_spec(revision.spec)
    destinations = _destinations(pipe, revision.number, spec, request.destinations)
    _check_where(pipe, spec, request.where, by)
    _refuse_second(pipe)
    return CheckedReplay(cell_id, revision.number, destinations)


def start_replay(
    *, pipe: Pipe, request: ReplayRequest, by: User | None, now: datetime, repeats: Replay | None = None
) -> Replay:
    """Start to deliver the selected events once more. A tenant has one replay under way at a time.

    `repeats`: the replay whose failed events are repeated.
    Raises InvalidValue, PipeClosedError, PipePausedError, NothingToReplayError, MigrationInProgressError,
    ReplayInProgressError, SandboxRefused.
    """
    checked = check_replay(pipe=pipe, request=request, by=by, now=now)
    try:
        with transaction.atomic():
            replay = Replay.objects.create(
                tenant_id=pipe.tenant_id,
                pipe=pipe,
                cell_id=checked.cell_id,
                by=by,
                repeats=repeats,
                created_at=now,
                state_since=now,
                bucket=bucket_at(now),
                revision=checked.revision,
                destinations=checked.destinations,
                since=request.since,
                until=request.until,
                where=request.where,
                keys=list(dict.fromkeys(request.keys)),
                ids=list(dict.fromkeys(request.ids)),
                revisions=list(request.revisions),
                rate_per_s=request.rate_per_s,
                rehearsal=request.rehearsal,
            )
            names = ("since", "until", "revision", "destinations", "rate_per_s", "rehearsal")
            started = {name: getattr(replay, name) for name in names} | ({"repeats": repeats.id} if repeats else {})
            record(pipe=pipe, by=by, action="replay.started", target=replay, after=started)
    except IntegrityError as exc:  # another one was created since the check
        raise ReplayInProgressError("Another replay of your tenant has just been started.") from exc
    log.info(
        "replay started", tenant=pipe.tenant_id, pipe=pipe.id, replay=replay.id, revision=replay.revision,
        destinations=replay.destinations, rehearsal=replay.rehearsal,
    )  # fmt: skip
    return replay


def pause_replay(*, replay: Replay, now: datetime, by: User | None = None) -> bool:
    """Pause a replay: units that were sent already are still delivered. Returns False if it was not running."""
    return _move(replay, [Replay.State.RUNNING], Replay.State.PAUSED, now, by)


@transaction.atomic
def resume_replay(*, replay: Replay, now: datetime, by: User | None = None) -> bool:
    """Continue a paused replay where it stopped. Returns False if it was not paused."""
    row = Replay.objects.select_for_update().get(id=replay.id)
    if row.state == Replay.State.PAUSED and row.started_at is not None:
        Replay.objects.filter(id=row.id).update(paused_s=F("paused_s") + (now - row.state_since).total_seconds())
    return _move(replay, [Replay.State.PAUSED], Replay.State.RUNNING, now, by)


def abort_replay(*, replay: Replay, now: datetime, by: User | None = None) -> bool:
    """Request an abort: units that were sent already are still delivered. Returns False if it had ended or ends."""
    return _move(replay, [Replay.State.RUNNING, Replay.State.PAUSED], Replay.State.ABORTING, now, by)


@transaction.atomic
def _move(replay: Replay, before: Sequence[str], after: str, now: datetime, by: User | None) -> bool:
    """Change the state and the version of its record, if the state is one of `before`."""
    was = replay.state
    moved = Replay.objects.filter(id=replay.id, state__in=before).update(
        state=after, state_since=now, version=F("version") + 1
    )
    replay.refresh_from_db()
    if moved:
        action = _ACTIONS[Replay.State(after)]
        record(pipe=replay.pipe, by=by, action=action, target=replay, before={"state": was}, after={"state": after})
        log.info("replay changed", pipe=replay.pipe_id, replay=replay.id, state=after)
    return moved == 1


def _checked_cell(pipe: Pipe, request: ReplayRequest) -> str:
    """Return the cell of a pipe whose events can be replayed. Raises ServiceError."""
    if pipe.state == Pipe.State.CLOSED:
        raise PipeClosedError(f"{pipe.name} is closed. Open it again before you replay its events.")
    if pipe.state == Pipe.State.PAUSED and not request.rehearsal:
        raise PipePausedError(f"{pipe.name} is paused and would cancel the copies. Resume it first, or rehearse.")
    if pipe.cell_id is None:
        raise NothingToReplayError(f"{pipe.name} is not placed on a cell yet, so it has no events.")
    blocking = [PipeMigration.State.DRAINING] if request.of_backfill else PipeMigration.UNDER_WAY
    if PipeMigration.objects.filter(pipe=pipe, state__in=blocking).exists():
        raise MigrationInProgressError(f"{pipe.name} is being migrated to another cell. Wait until that has ended.")
    return pipe.cell_id


def _check_range(pipe: Pipe, request: ReplayRequest, now: datetime) -> None:
    if request.since >= request.until:
        raise InvalidValue("until", "needs a time after `since`")
    if request.until > now:
        raise InvalidValue("until", "needs a time in the past: a replay has only events that have arrived")
    if request.until - request.since > LONGEST and not request.revisions:
        raise InvalidValue("since", f"needs at most {LONGEST.days} days before `until`; use several replays")
    if moved := last_switch_after(pipe, request.since):
        at = moved.isoformat(timespec="seconds")
        raise InvalidValue("since", f"needs a time after {at}: the pipe was migrated then, and left its earlier events")


def _check_selection(request: ReplayRequest) -> None:
    for field, texts, most, most_chars in (
        ("keys", request.keys, MOST_KEYS, MOST_KEY_CHARS),
        ("ids", request.ids, MOST_IDS, MOST_ID_CHARS),
    ):
        if len(texts) > most:
            raise InvalidValue(field, f"needs at most {most}, got {len(texts)}; use `where`, or several replays")
        if any(not 1 <= len(text) <= most_chars or text != storable(text) for text in texts):
            raise InvalidValue(field, f"needs texts of 1 to {most_chars} characters without U+0000")
    if len(request.revisions) > MOST_REVISIONS:
        raise InvalidValue("revisions", f"needs at most {MOST_REVISIONS}, got {len(request.revisions)}")
    selection = ("where", "keys", "ids", "revisions")
    sizes = {name: len(msgspec.json.encode(getattr(request, name))) for name in selection}
    if sum(sizes.values()) > MOST_SELECTION_BYTES:  # a record that Kafka refuses would stop the whole Provisioner
        field = max(sizes, key=lambda name: sizes[name])
        most_kib = MOST_SELECTION_BYTES // 1_024
        raise InvalidValue(field, f"needs at most {most_kib} KiB as JSON, with the rest of the selection; use fewer")


def _check_rate(pipe: Pipe, request: ReplayRequest) -> None:
    most = quotas_for(pipe.tenant_id).replay_units_per_s
    if not LEAST_RATE_PER_S <= request.rate_per_s <= most:
        raise InvalidValue("rate_per_s", f"needs {LEAST_RATE_PER_S:.0f} to {most}, which is your quota")


def _revision(pipe: Pipe, number: int | None) -> PipeRevision:
    """Return the revision to run, whose plan is published. Raises InvalidValue."""
    if number is None:
        live = pipe.revisions.filter(state=PipeRevision.State.LIVE).first()
        if live is None:
            raise InvalidValue("revision", "needs a number, because the pipe has no live revision")
        number = live.number
    row = pipe.revisions.filter(number=number).first()
    if row is None:
        raise InvalidValue("revision", f"needs a revision of this pipe, got {number}")
    if row.state == PipeRevision.State.FAILED:
        raise InvalidValue("revision", f"revision {number} failed: choose another one, or publish a corrected one")
    if row.published_offset is None:
        raise InvalidValue("revision", f"revision {number} is not published yet: wait until it is ramping or live")
    return row


def _is_fitting(to: DestinationSpec) -> bool:
    return isinstance(to, RemoteDestination | TopicDestination) and not keeps_newest(to)


def _destinations(pipe: Pipe, number: int, spec: PipeSpec, wanted: Sequence[str]) -> list[str]:
    """Return the destinations to send to. Raises InvalidValue, naming the first that cannot be replayed to."""
    states = dict(pipe.destinations.values_list("name", "state"))
    fitting = [name for name, to in spec.destinations.items() if _is_fitting(to)]
    active = [name for name in fitting if states.get(name) == Destination.State.ACTIVE]
    for name in wanted:
        if name not in spec.destinations:
            names = ", ".join(spec.destinations)
            raise InvalidValue("destinations", f"needs destinations of revision {number}, {names}; got {name[:40]}")
        if name not in fitting:
            kind = str(type(spec.destinations[name]).__struct_config__.tag)
            kind = {"topic": "compacted topic", "postgres": "table whose rows are updated"}.get(kind, kind)
            hint = ": recompute its table instead" if kind == "lake" else ""
            raise InvalidValue("destinations", f"needs type http, s3, postgres or topic, and {name} is a {kind}{hint}")
        if name not in active:
            reason = f"{name} is {states.get(name, 'removed')}: resume it first, or leave it out"
            raise InvalidValue("destinations", reason)
    chosen = [name for name in spec.destinations if name in wanted] if wanted else active
    if not chosen:
        raise InvalidValue(
            "destinations", f"revision {number} has no active destination of type http, s3, postgres or topic"
        )
    return chosen


def _check_where(pipe: Pipe, spec: PipeSpec, where: str, by: User | None) -> None:
    """Check the expression as that of a filter step: it compiles, and can be true for some event."""
    if not where:
        return
    if len(where) > MOST_WHERE_CHARS:
        raise InvalidValue("where", f"needs at most {MOST_WHERE_CHARS} characters, got {len(where)}")
    if where != storable(where):
        raise InvalidValue("where", "must not contain the character U+0000")
    try:
        sandbox.filter_copies(where, [], owner=f"user {by.pk}" if by else pipe.tenant_id)
    except sandbox.FilterRefusedError as exc:
        raise InvalidValue("where", str(exc).removesuffix(".")) from exc
    shapes = event_shapes_of(pipe.id)
    shape = either(shapes.get(name, ANY) for name in spec.sources) or ANY
    if not shape.is_any and (problem := expression_problem(where, shape)):
        raise InvalidValue("where", problem)


def _refuse_second(pipe: Pipe) -> None:
    other = Replay.objects.filter(tenant_id=pipe.tenant_id, state__in=Replay.UNDER_WAY).select_related("pipe").first()
    if other is not None:
        raise ReplayInProgressError(
            f"Replay {other.id} of {other.pipe.name} is {other.state}, and a tenant has one at a time. Wait until it "
            "has ended, or abort it."
        )
