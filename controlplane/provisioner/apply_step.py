"""Executes the steps of pipe migrations. Each is idempotent, safe to run twice at once, and safe to interrupt."""

from collections.abc import Callable
from datetime import datetime
from functools import partial

from controlplane.interlocks import pauses_of
from controlplane.leases import cell_states
from controlplane.provisioner.act import Effects
from controlplane.provisioner.cell_change import changing
from controlplane.provisioner.migrating import (
    AbandonMigration,
    AnnotateMigration,
    FinishMigration,
    HoldAtTarget,
    MigrationStep,
    RecordIngestLeft,
    RecordSourceEnds,
    RevertMigration,
    SwitchToTarget,
)
from mgmt.cells.queries.cells import places_of
from mgmt.models import PipeMigration
from mgmt.services import (
    cancel_migration,
    finish_migration,
    hold_at_target,
    note_refused_step,
    reverse_migration,
    switch_pipe,
)


def apply_step(effects: Effects, step: MigrationStep, now: datetime) -> None:
    """Execute one step. If the interlocks refuse it, the next snapshot shows the reason.

    Raises PipeMigration.DoesNotExist, and KafkaException while Kafka is unreachable.
    """
    row = PipeMigration.objects.select_related("pipe").get(id=step.migration)
    open_row = PipeMigration.objects.filter(id=row.id, state__in=PipeMigration.UNDER_WAY)
    match step:
        case AnnotateMigration(says=says, refusal=refusal):
            if open_row.update(says=says) and refusal:
                note_refused_step(migration=row, refusal=refusal, reason=says, now=now)
        case RecordIngestLeft():
            open_row.update(left_at=now)
        case RecordSourceEnds():
            ends = effects.topics.ends(places_of(row.source_id, "ingest"))
            open_row.update(ends=[[*partition, end] for partition, end in ends.items()])
        case AbandonMigration(why=why):
            cancel_migration(migration=row, says=why, now=now)
        case HoldAtTarget():
            hold_at_target(migration=row, now=now)
        case SwitchToTarget():
            _change_both(row, "switch", partial(switch_pipe, migration=row, now=now), now)
        case FinishMigration():
            _change_both(row, "finish", partial(finish_migration, migration=row, now=now), now, protective=True)
        case RevertMigration(why=why):
            revert = partial(reverse_migration, migration=row, why=why, now=now)
            _change_both(row, "turn back", revert, now, protective=True)


def _change_both(
    row: PipeMigration, what: str, make: Callable[[], bool], now: datetime, *, protective: bool = False
) -> None:
    """Make the change under the leases of both cells. An unstable source never keeps a pipe from leaving it."""
    both = {row.source_id: True, row.target_id: protective}
    with changing(both, f"{what} of {row.pipe_id}", now) as ours:
        if ours and (protective or not _is_paused(row.source_id, now)):
            make()


def _is_paused(cell: str, now: datetime) -> bool:
    """Return True if provisioning is paused there. A protective lease ignores pauses, but no pipe may leave then."""
    return any(pauses_of("provision", cell_states(now, [cell])[cell]))
