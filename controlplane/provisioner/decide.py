"""Decides the Provisioner's next actions from a snapshot alone.

States of a revision (state of the row, and what the data plane holds in it):

    requested   its plan and its destinations are published; the pipe's traffic is routed as before
       |        -> ramping, when every running lane and ingest replica holds them. A pipe without a live revision has
       |           no traffic to protect and does not wait.
    ramping     the pipe's record gives it its share of the keys: step by step next to the live revision, if that has
       |           traffic (controlplane.provisioner.ramping decides each step) and its author did not choose
       |           otherwise, else all keys at once
       |        -> live, when every lane and replica holds that record, and at least one process lane, one transmit
       |           lane and one ingest replica run
       |        -> failed, when it does worse than the live revision, which then takes all keys back
    live        destinations use its addresses; the earlier revision is retired, and its plan stays published for the
                messages that were stamped with it

Each transition is a change of the cell: while the interlocks refuse it (controlplane.interlocks), it waits, and the
reason is on the revision's row. A newer revision ends an older open one (failed, with the reason). Every transition is
derived from the rows and the control topic, so a tick that is killed anywhere, or runs twice, continues where it was.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from controlplane.compute.port import DesiredApplication
from controlplane.control_topic import missing_records
from controlplane.interlocks import Refusal, refusal_of
from controlplane.provisioner.desired_state import OPEN, DesiredState, wanted_versions
from controlplane.provisioner.ramping import AdvanceRamp, KeepShare, figures_to_keep, next_step, rollback_reason
from controlplane.provisioner.snapshot import (
    BelievedHeartbeat,
    CellSnapshot,
    PipePlacement,
    ProvisionerSnapshot,
    RevisionSnapshot,
)
from dataplane.tables.records import api_key_key, cell_key, destination_key, pipe_key, plan_key
from mgmt.cells.placement import place
from mgmt.ramps.schedule import first_share

HOLDING_STATES: Final = ("starting", "running", "draining")
LONGEST_REASON: Final = 300
NO_INGEST: Final = "waiting for ingest: no replica has reported in the last seconds"
NEEDED_LANES: Final = ("process", "transmit")


class PlacePipe(Struct, frozen=True):
    """Place a pipe on a cell. `by`: the criterion of the choice (mgmt.cells.placement.PlacementChoice)."""

    pipe: str
    cell: str
    by: str = "pipes"


class EnsureTopics(Struct, frozen=True):
    """Make a cell's topics, or check that they have not been replaced."""

    cell: str


class PublishRecords(Struct, frozen=True):
    """Write the records of these keys to the control topic, in this order."""

    keys: list[str]


class SubmitApplication(Struct, frozen=True):
    """Ask compute to run a cell's application."""

    desired: DesiredApplication


class StopApplication(Struct, frozen=True):
    """Ask compute to end a cell's application."""

    cell: str


class MarkPublished(Struct, frozen=True):
    """Store the control topic's offset after a revision's records."""

    revision: int
    offset: int


class StartRamp(Struct, frozen=True):
    """Move requested -> ramping; older ramping revisions of the pipe end. `share` in percent; 0: all keys at once."""

    revision: int
    share: int = 0


class RaiseShare(Struct, frozen=True):
    """Go to the ramp's next step; `figures` are those by which the present step ends."""

    revision: int
    share: int
    figures: Mapping[str, Any]


class RollBack(Struct, frozen=True):
    """Move ramping -> failed; the live revision takes all keys back."""

    revision: int
    reason: str
    figures: Mapping[str, Any]


class GoLive(Struct, frozen=True):
    """Move ramping -> live; the earlier revision is retired."""

    revision: int
    figures: Mapping[str, Any] = {}


class SupersedeRevision(Struct, frozen=True):
    """End an open revision because a newer one replaces it."""

    revision: int
    by: int


class AnnotateRevision(Struct, frozen=True):
    """Store on a revision what it waits for, as tenants read it. `refusal`: that of the interlocks behind it."""

    revision: int
    reason: str
    refusal: Refusal | None = None


ProvisionerAction = (
    PlacePipe
    | EnsureTopics
    | PublishRecords
    | SubmitApplication
    | StopApplication
    | MarkPublished
    | StartRamp
    | RaiseShare
    | RollBack
    | GoLive
    | SupersedeRevision
    | AnnotateRevision
)


def decide(snapshot: ProvisionerSnapshot) -> list[ProvisionerAction]:
    """Return all actions that are possible now; after some rounds only AnnotateRevision actions, or none, are left."""
    wanted = wanted_versions(snapshot)
    missing = missing_records(wanted, snapshot.published)
    return [
        *_place(snapshot),
        *_cells(snapshot),
        *([PublishRecords(missing)] if missing else []),
        *_revisions(DesiredState(snapshot, wanted)),
    ]


def _place(snapshot: ProvisionerSnapshot) -> Iterable[ProvisionerAction]:
    for pipe, choice in place(snapshot.to_place, snapshot.capacities, snapshot.placing, snapshot.dedicated).items():
        yield PlacePipe(pipe, choice.cell, choice.by)


def _cells(snapshot: ProvisionerSnapshot) -> Iterable[ProvisionerAction]:
    for cell in snapshot.cells:
        if not cell.bound or snapshot.check_topics:
            yield EnsureTopics(cell.id)
        desired = DesiredApplication(cell.id, cell.epoch, snapshot.master, cell.release)
        if cell.problem or not cell.bound or not cell.release:
            continue
        if cell.asleep and cell.desired is not None:
            yield StopApplication(cell.id)
        elif not cell.asleep and cell.desired != desired:
            yield SubmitApplication(desired)


def _revisions(desired: DesiredState) -> Iterable[ProvisionerAction]:
    by_pipe: dict[str, list[RevisionSnapshot]] = defaultdict(list)
    for revision in desired.snapshot.revisions:
        by_pipe[revision.pipe].append(revision)
    cells = {cell.id: cell for cell in desired.snapshot.cells}
    for pipe in desired.snapshot.pipes:
        yield from _pipe(desired, cells.get(pipe.cell or ""), pipe, by_pipe[pipe.id])


def _pipe(
    desired: DesiredState, cell: CellSnapshot | None, pipe: PipePlacement, revisions: list[RevisionSnapshot]
) -> Iterable[ProvisionerAction]:
    has_live = any(r.state == "live" for r in revisions)
    for state in OPEN:
        ordered = sorted((r for r in revisions if r.state == state), key=lambda r: r.number)
        yield from (SupersedeRevision(r.id, ordered[-1].number) for r in ordered[:-1])
        for revision in ordered[-1:]:
            yield from _rollback(desired.snapshot, cell, revision) or _step(desired, cell, pipe, revision, has_live)


def _rollback(
    snapshot: ProvisionerSnapshot, cell: CellSnapshot | None, revision: RevisionSnapshot
) -> list[ProvisionerAction]:
    """Roll a bad revision back. That waits only for another change of the cell to end."""
    ramp = snapshot.ramps.get(revision.id)
    why = rollback_reason(ramp, snapshot.policy) if ramp is not None else ""
    if ramp is None or not why:
        return []
    return _change(snapshot, cell, revision, RollBack(revision.id, why, figures_to_keep(ramp)), protective=True)


def _step(
    desired: DesiredState, cell: CellSnapshot | None, pipe: PipePlacement, revision: RevisionSnapshot, has_live: bool
) -> Iterable[ProvisionerAction]:
    """Yield the action that advances one open revision, or its annotation with what it waits for."""
    if why := _not_ready(cell):
        yield from _wait(revision, why)
        return
    assert cell is not None  # noqa: S101 - else _not_ready returned a reason
    snapshot = desired.snapshot
    end = desired.end_of(_needed(snapshot, cell, pipe, revision))
    if end is None:
        yield from _wait(revision, f"publishing to cell {cell.id}")
        return
    if revision.published_offset != end:
        yield MarkPublished(revision.id, end)
    if revision.state == "requested":
        why = why_not_held(cell, end, snapshot.heartbeats) if has_live else ""
        ramps = has_live and not revision.at_once
        share = first_share(snapshot.policy, snapshot.recently_ramped.get(pipe.id, 0)) if ramps else 0
        yield from _wait(revision, why) if why else _change(snapshot, cell, revision, StartRamp(revision.id, share))
    else:
        why = why_not_held(cell, end, snapshot.heartbeats)
        yield from _wait(revision, why) if why else _advance(snapshot, cell, pipe, revision)


def _advance(
    snapshot: ProvisionerSnapshot, cell: CellSnapshot, pipe: PipePlacement, revision: RevisionSnapshot
) -> list[ProvisionerAction]:
    """Return the next step of a ramping revision whose records every lane and replica holds, if its ramp allows it."""
    ramp = snapshot.ramps.get(revision.id)
    if ramp is None:
        return _change(snapshot, cell, revision, GoLive(revision.id))
    if not pipe.active:
        return _wait(revision, f"at {ramp.share} % of the keys until the pipe is active again")
    match next_step(ramp, snapshot.policy, snapshot.now):
        case KeepShare(reason):
            return _wait(revision, reason)
        case AdvanceRamp(None):
            return _change(snapshot, cell, revision, GoLive(revision.id, figures_to_keep(ramp)))
        case AdvanceRamp(share):
            assert share is not None  # noqa: S101 - for the type checker
            return _change(snapshot, cell, revision, RaiseShare(revision.id, share, figures_to_keep(ramp)))


def _change(
    snapshot: ProvisionerSnapshot,
    cell: CellSnapshot | None,
    revision: RevisionSnapshot,
    action: ProvisionerAction,
    *,
    protective: bool = False,
) -> list[ProvisionerAction]:
    """Return the action, unless the interlocks keep the Provisioner from changing the cell now."""
    state = snapshot.states.get(cell.id) if cell else None
    refusal = refusal_of("provision", state, protective=protective) if state else None
    return _wait(revision, refusal.public_reason, refusal) if refusal else [action]


def _not_ready(cell: CellSnapshot | None) -> str:
    if cell is None:
        return "waiting for a cell with room"
    if cell.problem:
        return f"cell {cell.id}: {cell.problem}"
    if not cell.bound:
        return f"waiting for the topics of cell {cell.id}"
    return "" if cell.release else f"waiting until cell {cell.id} has a release of the data plane"


def _needed(
    snapshot: ProvisionerSnapshot, cell: CellSnapshot, pipe: PipePlacement, revision: RevisionSnapshot
) -> list[str]:
    """Return the keys of the records that lanes and replicas must hold before the revision's next step."""
    needed = [cell_key(cell.id), plan_key(pipe.id, revision.number)]
    needed += [destination_key(d.pipe, d.name) for d in snapshot.destinations if d.pipe == pipe.id]
    if revision.state == "ramping":
        needed += [pipe_key(pipe.id), *(api_key_key(k.name) for k in snapshot.keys if k.pipe == pipe.id)]
    return needed


def why_not_held(cell: CellSnapshot, end: int, heartbeats: Iterable[BelievedHeartbeat]) -> str:
    """Return why some running lane of the cell or ingest replica lacks control records below `end`; "" if none does.

    A sleeping cell has no lane that could lack any: lanes read the whole control topic before they consume a message.
    """
    own_heartbeats = [b for b in heartbeats if b.state in HOLDING_STATES and _serves(b, cell)]
    running = {b.kind for b in own_heartbeats if b.state == "running"}
    for kind in () if cell.asleep else NEEDED_LANES:
        if kind not in running:
            return f"waiting for cell {cell.id}: no {kind} lane has reported in the last seconds"
    if "ingest" not in running:
        return NO_INGEST
    return why_behind(own_heartbeats, end)


def why_behind(heartbeats: Sequence[BelievedHeartbeat], end: int) -> str:
    """Return which writer is furthest behind in the control topic, if below `end`; "" if all have read that far."""
    slowest = min(heartbeats, key=lambda b: b.table_offset, default=None)
    if slowest is None or slowest.table_offset >= end:
        return ""
    return f"waiting for {slowest.writer}: it has read control records up to {slowest.table_offset} of {end}"


def _serves(beat: BelievedHeartbeat, cell: CellSnapshot) -> bool:
    if beat.kind == "ingest":
        return True
    return beat.cell == cell.id and beat.epoch == cell.epoch and beat.kind != "driver"


def _wait(revision: RevisionSnapshot, reason: str, refusal: Refusal | None = None) -> list[ProvisionerAction]:
    stored = reason[:LONGEST_REASON]
    return [] if revision.reason == stored else [AnnotateRevision(revision.id, stored, refusal)]
