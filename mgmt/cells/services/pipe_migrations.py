"""Services of pipe migrations: a person requests one, and the Provisioner carries it out step by step."""

from datetime import datetime
from typing import Any, Final

import structlog
from django.db import transaction
from django.db.models import F, QuerySet

from mgmt.audit.services import record
from mgmt.cells.query_placement import query_in_use
from mgmt.cells.services.control import note
from mgmt.errors import InvalidValue, MigrationInProgressError, NotMigratableError
from mgmt.models import (
    Admission,
    Cell,
    ControlAction,
    LaneSignal,
    Pipe,
    PipeMigration,
    PipeRevision,
    Redrive,
    Replay,
    Shadow,
    Topic,
    User,
)
from mgmt.pipes.queries.pipes import destinations_in_use, must_keep_order, specs_in_use
from mgmt.pipes.services.publishing import republish_pipe

LONGEST: Final = 200
MigrationState = PipeMigration.State
log = structlog.get_logger(__name__)


@transaction.atomic
def request_migration(*, pipe: Pipe, target: Cell, reason: str, by: User | None, now: datetime) -> PipeMigration:
    """Request a migration of the pipe. Raises InvalidValue, NotMigratableError, MigrationInProgressError."""
    reason = reason.strip()
    pipe = Pipe.objects.select_for_update(no_key=True).get(id=pipe.id)
    if not 1 <= len(reason) <= LONGEST:
        raise InvalidValue("reason", f"needs 1 to {LONGEST} characters; the control audit shows it")
    if pipe.cell_id in (None, target.id):
        raise InvalidValue("cell", "needs a cell other than the pipe's own, and a pipe that has been placed")
    if under_way := pipe.relocations.filter(state__in=PipeMigration.UNDER_WAY).first():
        raise MigrationInProgressError(
            f"{pipe.name} is already being migrated to {under_way.target_id}. Wait until that ends, or cancel it."
        )
    if why := why_unfit(pipe, target.id):
        raise NotMigratableError(f"{pipe.name} cannot be migrated: {why}.")
    row = PipeMigration.objects.create(
        pipe=pipe, source_id=str(pipe.cell_id), target=target, reason=reason, by=by, asked_at=now
    )
    after = {"cell": target.id, "reason": reason}
    record(pipe=pipe, by=by, action="pipe.migration_requested", after=after)
    _note(row, ("move-pipe", ControlAction.Outcome.REQUESTED), now, reason=reason, by=by)
    return row


@transaction.atomic
def cancel_migration(*, migration: PipeMigration, says: str, now: datetime, by: User | None = None) -> bool:
    """Cancel a migration. Returns False if the pipe has been switched already, or the migration has ended."""
    mine = PipeMigration.objects.filter(id=migration.id, state=MigrationState.REQUESTED)
    if not mine.update(state=MigrationState.GIVEN_UP, says=says[:300], finished_at=now):
        return False
    republish_pipe(pipe_id=migration.pipe_id)  # the target no longer holds the pipe's messages
    after = {"cell": migration.target_id, "reason": says}
    record(pipe=migration.pipe, by=by, action="pipe.migration_cancelled", after=after)
    _note(migration, ("move-pipe", ControlAction.Outcome.CANCELLED), now, reason=says, by=by)
    return True


@transaction.atomic
def hold_at_target(*, migration: PipeMigration, now: datetime) -> bool:
    """Make the target hold the pipe's messages, for a pipe that keeps an order while the source has earlier messages.

    No message arrives there before the switch, which waits until all lanes of the target know of the hold. Returns
    False if it holds them already, or the migration has been switched or ended.
    """
    mine = PipeMigration.objects.filter(id=migration.id, state=MigrationState.REQUESTED, held_at=None)
    if not mine.update(held_at=now):
        return False
    republish_pipe(pipe_id=migration.pipe_id)
    return True


@transaction.atomic
def switch_pipe(*, migration: PipeMigration, now: datetime) -> bool:
    """Switch the pipe to the target, requested -> draining: its next record names it. Returns False if it must wait."""
    row = PipeMigration.objects.select_for_update().get(id=migration.id)
    if row.state != MigrationState.REQUESTED or why_busy(row.pipe) or why_unfit(row.pipe, row.target_id):
        return False
    if row.held_at is None and must_keep_order(row.pipe):
        return False
    _place(row)
    PipeMigration.objects.filter(id=row.id).update(state=MigrationState.DRAINING, switched_at=now, says="")
    _note(row, ("switch-pipe", ControlAction.Outcome.DONE), now, reason=row.reason)
    return True


@transaction.atomic
def reverse_migration(*, migration: PipeMigration, why: str, now: datetime) -> bool:
    """Turn a migration back (draining -> turned back): new events are sent to the source again; the target drains."""
    mine = PipeMigration.objects.filter(id=migration.id, state=MigrationState.DRAINING)
    if not mine.update(state=MigrationState.TURNED_BACK, says=why[:300], finished_at=now):
        return False
    back = PipeMigration.objects.create(
        pipe_id=migration.pipe_id,
        source_id=migration.target_id,
        target_id=migration.source_id,
        state=MigrationState.DRAINING,
        reason=why[:300],
        asked_at=now,
        switched_at=now,
        back_of=migration,
    )
    _place(back)
    _note(back, ("switch-pipe", ControlAction.Outcome.ROLLED_BACK), now, reason=why)
    return True


@transaction.atomic
def finish_migration(*, migration: PipeMigration, now: datetime) -> bool:
    """End a migration, draining -> done: the source has no message of the pipe queued. False if it was not draining."""
    mine = PipeMigration.objects.filter(id=migration.id, state=MigrationState.DRAINING)
    if not mine.update(state=MigrationState.DONE, says="", finished_at=now):
        return False
    republish_pipe(pipe_id=migration.pipe_id)
    _note(migration, ("move-pipe", ControlAction.Outcome.DONE), now)
    return True


def note_refused_step(*, migration: PipeMigration, refusal: str, reason: str, now: datetime) -> None:
    """Record in the control audit that the interlocks refused the migration's next step, and why."""
    action = "switch-pipe" if migration.switched_at is None else "move-pipe"
    _note(migration, (action, ControlAction.Outcome.REFUSED), now, reason=reason, refusal=refusal)


def why_unfit(pipe: Pipe, target: str = "") -> str:
    """Return why the pipe cannot be migrated to the target, or ("") to any cell; "" if it can."""
    if Cell.objects.filter(id=target, dedicated_to__isnull=False).exclude(dedicated_to=pipe.tenant_id).exists():
        return f"cell {target} is dedicated to another tenant"
    if query := query_in_use(specs_in_use(pipe), destinations_in_use(pipe)):
        return f"{query}, and the state of its query stays in the cell"
    return _same_generation(str(pipe.cell_id), target)


def why_busy(pipe: Pipe) -> str:
    """Return what must end before the pipe can be switched; "" if nothing."""
    if pipe.revisions.filter(state__in=["requested", "ramping"]).exists():
        return "waiting until the pipe's newest revision is live"
    if not pipe.revisions.filter(state=PipeRevision.State.LIVE).exists():
        return "waiting for a live revision of the pipe"
    work: list[tuple[QuerySet[Any], str]] = [
        (pipe.moves.filter(state__in=Redrive.UNDER_WAY), "a release or redrive"),
        (pipe.replays.filter(state__in=Replay.UNDER_WAY), "a replay"),
        (pipe.backfills.filter(replay=None, ended_at=None), "a backfill: its events are on this cell"),
        (pipe.shadows.filter(state__in=Shadow.UNDER_WAY), "a shadow run"),
        (
            Admission.objects.filter(pipe=pipe, ended_at=None),
            "the pipe's admission: the messages that it holds are on this cell",
        ),
    ]
    return next((f"waiting for the end of {words}" for rows, words in work if rows.exists()), "")


def _same_generation(source: str, target: str) -> str:
    """Return why two cells conflict: topics from before generations were unique over all cells repeat positions."""
    of_both = Topic.objects.filter(cell__in=[source, target]).values_list("cell", "generation").distinct()
    generations = [generation for _, generation in of_both]
    if both := {one for one in generations if generations.count(one) > 1}:
        return f"the topics of {source} and {target} share generation {max(both)}, so positions would not be unique"
    return ""


def _place(row: PipeMigration) -> None:
    Pipe.objects.filter(id=row.pipe_id).update(cell=row.target_id, version=F("version") + 1)
    LaneSignal.objects.filter(
        pipe_id=row.pipe_id
    ).delete()  # signals of the source's lanes say nothing about the target's lanes
    log.info("pipe switched", pipe=row.pipe_id, source=row.source_id, target=row.target_id)


def _note(
    row: PipeMigration,
    what: tuple[str, ControlAction.Outcome],
    now: datetime,
    *,
    refusal: str = "",
    reason: str = "",
    by: User | None = None,
) -> None:
    """Add an audit entry for each of the two cells, so that both pages show it. `what`: action and outcome."""
    controller, (action, outcome) = (ControlAction.PERSON if by else "provision"), what
    said: dict[str, Any] = {"outcome": outcome, "refusal": refusal, "reason": reason, "author": by, "at": now}
    said["pipe"] = row.pipe_id
    for cell in (row.source_id, row.target_id):
        note(controller, action, cell=cell, detail={"from": row.source_id, "to": row.target_id}, **said)
