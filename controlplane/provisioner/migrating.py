"""Decides the steps of a pipe's migration to another cell, from a snapshot alone: prepare, switch, drain.

    requested   wait until the target's lanes and every ingest replica hold all records that the pipe needs
       |        -> draining: the pipe's record names the target. Ingest chooses the cell of each event, once; the lanes
       of |           the source still run all messages on their topics
    draining    wait until every ingest replica holds that record, then until no request that knew the earlier one can
       |           still write, then store the source's end offsets: no message of the pipe is written after them
       |        -> done, when the source's readers have passed these ends and the pipe's messages further down the path
       |        -> turned back, when the target is unstable and the source is not: a migration in the other direction

The switch is a change of both cells: it waits while the interlocks refuse it for the target, while another controller
changes the source, and while provisioning is paused there. An unstable source does not keep a pipe from leaving it.
"""

from datetime import timedelta
from typing import Final

from msgspec import Struct

from controlplane.interlocks import VERDICT_MAX_AGE, Refusal, RefusalKind, clock, pauses_of, refusal_of
from controlplane.provisioner.decide import HOLDING_STATES, NO_INGEST, why_behind, why_not_held
from controlplane.provisioner.desired_state import DesiredState, wanted_versions
from controlplane.provisioner.snapshot import MigrationView, ProvisionerSnapshot
from dataplane.tables.records import api_key_key, cell_key, destination_key, pipe_key, plan_key

PATIENCE: Final = timedelta(minutes=30)  # a migration that cannot be switched within it is cancelled
LAST_REQUESTS: Final = timedelta(seconds=10)  # ingest waits 5 s for a report
MAX_REASON_CHARS: Final = 300


class SwitchToTarget(Struct, frozen=True):
    """Move requested -> draining."""

    migration: int


class HoldAtTarget(Struct, frozen=True):
    """Have the target hold the pipe's messages, before the first one arrives there: the pipe keeps an order."""

    migration: int


class RecordIngestLeft(Struct, frozen=True):
    """Store the time from which no ingest replica sends to the source, except for requests already begun."""

    migration: int


class RecordSourceEnds(Struct, frozen=True):
    """Store the present end offsets of the source's ingest topic."""

    migration: int


class FinishMigration(Struct, frozen=True):
    """Move draining -> done."""

    migration: int


class RevertMigration(Struct, frozen=True):
    """Move draining -> turned back."""

    migration: int
    why: str


class AbandonMigration(Struct, frozen=True):
    """Move requested -> given up."""

    migration: int
    why: str


class AnnotateMigration(Struct, frozen=True):
    """Store on a migration what it waits for. `refusal`: type of the reason, if the interlocks refuse its next step."""

    migration: int
    says: str
    refusal: RefusalKind | None = None


MigrationStep = (
    HoldAtTarget
    | SwitchToTarget
    | RecordIngestLeft
    | RecordSourceEnds
    | FinishMigration
    | RevertMigration
    | AbandonMigration
    | AnnotateMigration
)


def next_steps(snapshot: ProvisionerSnapshot) -> list[MigrationStep]:
    """Return at most one step for each open migration; none for one whose row already says what it waits for."""
    if not snapshot.migrations:
        return []
    desired = DesiredState(snapshot, wanted_versions(snapshot))
    steps = [_drain(desired, row) if row.state == "draining" else _prepare(desired, row) for row in snapshot.migrations]
    stored = {row.id: row.says for row in snapshot.migrations}
    return [step for step in steps if not isinstance(step, AnnotateMigration) or step.says != stored[step.migration]]


def _prepare(desired: DesiredState, row: MigrationView) -> MigrationStep:
    if row.unfit:
        return AbandonMigration(row.id, row.unfit)
    why = row.busy or _not_ready(desired, row)
    waits = _annotate(row, why) if why else _refused(desired, row)
    if waits is None:
        return SwitchToTarget(row.id) if row.held or not row.in_order else HoldAtTarget(row.id)
    is_late = desired.snapshot.now - row.asked_at > PATIENCE
    return AbandonMigration(row.id, f"not within {PATIENCE.seconds // 60} min: {waits.says}") if is_late else waits


def _not_ready(desired: DesiredState, row: MigrationView) -> str:
    target = next((cell for cell in desired.snapshot.cells if cell.id == row.target), None)
    if target is None or target.problem or not target.bound or not target.release:
        why = (target.problem if target else "") or "it has no topics or no release yet"
        return f"waiting for cell {row.target}: {why}"
    end = desired.end_of(_needed(desired.snapshot, row))
    return "publishing" if end is None else why_not_held(target, end, desired.snapshot.heartbeats)


def _needed(snapshot: ProvisionerSnapshot, row: MigrationView) -> list[str]:
    plans = [
        plan_key(one.pipe, one.number) for one in snapshot.revisions if one.pipe == row.pipe and one.state != "failed"
    ]
    destinations = [destination_key(one.pipe, one.name) for one in snapshot.destinations if one.pipe == row.pipe]
    keys = [api_key_key(one.name) for one in snapshot.keys if one.pipe == row.pipe]
    return [cell_key(row.target), *plans, *destinations, pipe_key(row.pipe), *keys]


def _refused(desired: DesiredState, row: MigrationView) -> AnnotateMigration | None:
    source, target = desired.snapshot.states[row.source], desired.snapshot.states[row.target]
    if refusal := refusal_of("provision", target) or refusal_of("provision", source, protective=True):
        return _annotate_refusal(row, refusal)
    is_paused = any(pauses_of("provision", source))
    return _annotate(row, f"provisioning is paused on cell {row.source}", "paused") if is_paused else None


def _drain(desired: DesiredState, row: MigrationView) -> MigrationStep:
    if why := _why_revert(desired.snapshot, row):
        return _unless_leased(desired, row, RevertMigration(row.id, why))
    end = desired.end_of([pipe_key(row.pipe)])
    if end is None:
        return _annotate(row, "publishing")
    if row.left_at is None:
        why = _not_left(desired.snapshot, end)
        return _annotate(row, why) if why else RecordIngestLeft(row.id)
    if desired.snapshot.now - row.left_at < LAST_REQUESTS:
        return _annotate(row, f"requests that began before {clock(row.left_at)} may still write to cell {row.source}")
    if not row.ends:
        return RecordSourceEnds(row.id)
    return _annotate(row, row.behind) if row.behind else _unless_leased(desired, row, FinishMigration(row.id))


def _why_revert(snapshot: ProvisionerSnapshot, row: MigrationView) -> str:
    """Return why the migration must turn back, or "".

    A migration back is not reverted again: the pipe would alternate between the two cells. Nor is one of a pipe
    that keeps an order: the target has delivered nothing yet, and the messages that it holds would come after new
    ones sent to the source.
    """
    source, target = (snapshot.states[cell].verdict for cell in (row.source, row.target))
    is_unstable = target is not None and target.state == "unstable" and snapshot.now - target.at <= VERDICT_MAX_AGE
    if row.is_revert or row.held or target is None or not is_unstable:
        return ""
    if source is not None and source.state == "unstable":
        return ""
    return f"cell {row.target} is unstable since {clock(target.since)}: {'; '.join(target.reasons)}"


def _not_left(snapshot: ProvisionerSnapshot, end: int) -> str:
    replicas = [beat for beat in snapshot.heartbeats if beat.kind == "ingest" and beat.state in HOLDING_STATES]
    return why_behind(replicas, end) if replicas else NO_INGEST


def _unless_leased(desired: DesiredState, row: MigrationView, step: MigrationStep) -> MigrationStep:
    """Return the step, unless another change of either cell is in progress: nothing else stops a revert or a finish."""
    refusals = [
        refusal_of("provision", desired.snapshot.states[cell], protective=True) for cell in (row.source, row.target)
    ]
    refusal = next((one for one in refusals if one is not None), None)
    return step if refusal is None else _annotate_refusal(row, refusal)


def _annotate_refusal(row: MigrationView, refusal: Refusal) -> AnnotateMigration:
    return _annotate(row, f"{refusal.why}; retried {refusal.again}", refusal.kind)


def _annotate(row: MigrationView, why: str, refusal: RefusalKind | None = None) -> AnnotateMigration:
    return AnnotateMigration(row.id, why[:MAX_REASON_CHARS], refusal)
