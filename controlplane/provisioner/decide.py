"""What the Provisioner does next, from a snapshot alone.

A revision's way (state of the row -> what the data plane has been told):

    requested   its plan and its destinations are published; the pipe's traffic still goes where it went
       |        -> ramping, when every running lane and ingest replica holds them. A pipe without a live revision has
       |           no traffic to protect and does not wait.
    ramping     the pipe's record gives it its share of the keys: step by step beside the live one, where there is one
       |           with traffic (controlplane.provisioner.ramping says when it goes on), else all of them at once
       |        -> live, when every one of them holds that record, and at least one process lane, one transmit lane
       |           and one ingest replica run
       |        -> failed, when it does worse than the live one: that takes everything back
    live        destinations take over its addresses; the revision before it is retired, its plan stays published
                for the messages that were stamped with it

Either step is a change of the cell: it waits, and says so, while the interlocks refuse it (controlplane.interlocks).
A newer revision ends an older open one (failed, with the reason). Every step is read off the rows and the control
topic, so a tick that is killed anywhere, or runs twice, finds what it had done and goes on.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from controlplane.compute.port import Desired
from controlplane.control_topic import missing_records
from controlplane.interlocks import why_not
from controlplane.provisioner.ramping import On, Stay, figures_to_keep, next_step, why_back
from controlplane.provisioner.snapshot import Beat, CellView, PipeView, RevisionView, Snapshot
from controlplane.provisioner.wanted import (
    OPEN,
    Look,
    cell_key,
    destination_key,
    digest_key,
    pipe_key,
    plan_key,
    wanted_versions,
)
from mgmt.provisioning.placing import place
from mgmt.provisioning.ramps import first_share

HOLDING_STATES: Final = ("starting", "running", "draining")
LONGEST_REASON: Final = 300
NO_INGEST: Final = "waiting for ingest: no replica has reported in the last seconds"
NEEDED_LANES: Final = ("process", "transmit")


class Place(Struct, frozen=True):
    """Put a pipe on a cell. `by`: what it was chosen by (mgmt.provisioning.placing.Choice)."""

    pipe: str
    cell: str
    by: str = "pipes"


class EnsureTopics(Struct, frozen=True):
    """Make a cell's topics, or check that they are still the ones that were made."""

    cell: str


class Publish(Struct, frozen=True):
    """Write the records of these keys to the control topic, in this order."""

    keys: list[str]


class Submit(Struct, frozen=True):
    """Ask compute to run a cell's application."""

    desired: Desired


class Stop(Struct, frozen=True):
    """Ask compute for no application of a cell."""

    cell: str


class MarkPublished(Struct, frozen=True):
    """Note where a revision's records end in the control topic."""

    revision: int
    offset: int


class StartRamp(Struct, frozen=True):
    """requested -> ramping; older ramping revisions of the pipe end. `share` 0: everything at once."""

    revision: int
    share: int = 0


class RaiseShare(Struct, frozen=True):
    """On to the ramp's next step; `figures` are those on which this one is left."""

    revision: int
    share: int
    figures: Mapping[str, Any]


class RollBack(Struct, frozen=True):
    """ramping -> failed; the live revision takes everything back."""

    revision: int
    reason: str
    figures: Mapping[str, Any]


class GoLive(Struct, frozen=True):
    """ramping -> live; the one before is retired."""

    revision: int
    figures: Mapping[str, Any] = {}


class Supersede(Struct, frozen=True):
    """End an open revision that a newer one has overtaken."""

    revision: int
    by: int


class Wait(Struct, frozen=True):
    """Say on a revision what it waits for. `refused`: the interlocks let nobody provision its cell now."""

    revision: int
    reason: str
    refused: bool = False


Action = (
    Place
    | EnsureTopics
    | Publish
    | Submit
    | Stop
    | MarkPublished
    | StartRamp
    | RaiseShare
    | RollBack
    | GoLive
    | Supersede
    | Wait
)


def decide(snapshot: Snapshot) -> list[Action]:
    """All that can be done now; acting on it and deciding again ends in a list of nothing but Wait."""
    wanted = wanted_versions(snapshot)
    missing = missing_records(wanted, snapshot.published)
    return [
        *_place(snapshot),
        *_cells(snapshot),
        *([Publish(missing)] if missing else []),
        *_revisions(Look(snapshot, wanted)),
    ]


def _place(snapshot: Snapshot) -> Iterable[Action]:
    for pipe, choice in place(snapshot.to_place, snapshot.rooms, snapshot.placing, snapshot.dedicated).items():
        yield Place(pipe, choice.cell, choice.by)


def _cells(snapshot: Snapshot) -> Iterable[Action]:
    for cell in snapshot.cells:
        if not cell.bound or snapshot.check_topics:
            yield EnsureTopics(cell.id)
        desired = Desired(cell.id, cell.epoch, snapshot.master, cell.release)
        if cell.problem or not cell.bound or not cell.release:
            continue
        if cell.asleep and cell.desired is not None:
            yield Stop(cell.id)
        elif not cell.asleep and cell.desired != desired:
            yield Submit(desired)


def _revisions(look: Look) -> Iterable[Action]:
    by_pipe: dict[str, list[RevisionView]] = defaultdict(list)
    for revision in look.snapshot.revisions:
        by_pipe[revision.pipe].append(revision)
    cells = {cell.id: cell for cell in look.snapshot.cells}
    for pipe in look.snapshot.pipes:
        yield from _pipe(look, cells.get(pipe.cell or ""), pipe, by_pipe[pipe.id])


def _pipe(look: Look, cell: CellView | None, pipe: PipeView, revisions: list[RevisionView]) -> Iterable[Action]:
    has_live = any(r.state == "live" for r in revisions)
    for state in OPEN:
        ordered = sorted((r for r in revisions if r.state == state), key=lambda r: r.number)
        yield from (Supersede(r.id, ordered[-1].number) for r in ordered[:-1])
        for revision in ordered[-1:]:
            yield from _back(look.snapshot, cell, revision) or _step(look, cell, pipe, revision, has_live)


def _back(snapshot: Snapshot, cell: CellView | None, revision: RevisionView) -> list[Action]:
    """Going back waits for nothing but the end of another change to the cell."""
    ramp = snapshot.ramps.get(revision.id)
    why = why_back(ramp, snapshot.policy) if ramp is not None else ""
    if ramp is None or not why:
        return []
    return _change(snapshot, cell, revision, RollBack(revision.id, why, figures_to_keep(ramp)), protective=True)


def _step(
    look: Look, cell: CellView | None, pipe: PipeView, revision: RevisionView, has_live: bool
) -> Iterable[Action]:
    """What moves one open revision on, or what it waits for."""
    if why := _not_ready(cell):
        yield from _wait(revision, why)
        return
    assert cell is not None  # noqa: S101 - _not_ready has said so
    snapshot = look.snapshot
    end = look.end_of(_needed(snapshot, cell, pipe, revision))
    if end is None:
        yield from _wait(revision, f"publishing to cell {cell.id}")
        return
    if revision.published_offset != end:
        yield MarkPublished(revision.id, end)
    if revision.state == "requested":
        why = why_not_held(cell, end, snapshot.beats) if has_live else ""
        share = first_share(snapshot.policy, snapshot.recent.get(pipe.id, 0)) if has_live else 0
        yield from _wait(revision, why) if why else _change(snapshot, cell, revision, StartRamp(revision.id, share))
    else:
        why = why_not_held(cell, end, snapshot.beats)
        yield from _wait(revision, why) if why else _onward(snapshot, cell, pipe, revision)


def _onward(snapshot: Snapshot, cell: CellView, pipe: PipeView, revision: RevisionView) -> list[Action]:
    """The next step of a revision that all hold, if its ramp says so."""
    ramp = snapshot.ramps.get(revision.id)
    if ramp is None:
        return _change(snapshot, cell, revision, GoLive(revision.id))
    if not pipe.active:
        return _wait(revision, f"at {ramp.share} % of the keys until the pipe is active again")
    match next_step(ramp, snapshot.policy, snapshot.now):
        case Stay(reason):
            return _wait(revision, reason)
        case On(None):
            return _change(snapshot, cell, revision, GoLive(revision.id, figures_to_keep(ramp)))
        case On(share):
            assert share is not None  # noqa: S101 - for the type checker
            return _change(snapshot, cell, revision, RaiseShare(revision.id, share, figures_to_keep(ramp)))


def _change(
    snapshot: Snapshot, cell: CellView | None, revision: RevisionView, action: Action, *, protective: bool = False
) -> list[Action]:
    """The action, unless the interlocks keep the Provisioner from changing the cell now."""
    state = snapshot.states.get(cell.id) if cell else None
    refusal = why_not("provision", state, protective=protective) if state else None
    return _wait(revision, refusal.why, refused=True) if refusal else [action]


def _not_ready(cell: CellView | None) -> str:
    if cell is None:
        return "waiting for a cell to be placed on"
    if cell.problem:
        return f"cell {cell.id}: {cell.problem}"
    if not cell.bound:
        return f"waiting for the topics of cell {cell.id}"
    return "" if cell.release else f"waiting for cell {cell.id} to be given a release of the data plane"


def _needed(snapshot: Snapshot, cell: CellView, pipe: PipeView, revision: RevisionView) -> list[str]:
    """The records that must be held before the revision's next step."""
    needed = [cell_key(cell.id), plan_key(pipe.id, revision.number)]
    needed += [destination_key(d.pipe, d.name) for d in snapshot.destinations if d.pipe == pipe.id]
    if revision.state == "ramping":
        needed += [pipe_key(pipe.id), *(digest_key(k.name) for k in snapshot.keys if k.pipe == pipe.id)]
    return needed


def why_not_held(cell: CellView, end: int, beats: Iterable[Beat]) -> str:
    """Why not every running lane of the cell and ingest replica holds the control topic up to `end`; "" if they do.

    A cell that sleeps has no lane that could hold less: those that wake read all of it before they take a message.
    """
    ours = [b for b in beats if b.state in HOLDING_STATES and _serves(b, cell)]
    running = {b.kind for b in ours if b.state == "running"}
    for kind in () if cell.asleep else NEEDED_LANES:
        if kind not in running:
            return f"waiting for cell {cell.id}: no {kind} lane has reported in the last seconds"
    if "ingest" not in running:
        return NO_INGEST
    return why_behind(ours, end)


def why_behind(beats: Sequence[Beat], end: int) -> str:
    """Which of these holds the control topic least far, if not up to `end`; "" if all of them hold it."""
    slowest = min(beats, key=lambda b: b.table_offset, default=None)
    if slowest is None or slowest.table_offset >= end:
        return ""
    return f"waiting for {slowest.writer}: it holds control records up to {slowest.table_offset} of {end}"


def _serves(beat: Beat, cell: CellView) -> bool:
    if beat.kind == "ingest":
        return True
    return beat.cell == cell.id and beat.epoch == cell.epoch and beat.kind != "driver"


def _wait(revision: RevisionView, reason: str, *, refused: bool = False) -> list[Action]:
    said = reason[:LONGEST_REASON]
    return [] if revision.reason == said else [Wait(revision.id, said, refused)]
