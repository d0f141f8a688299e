"""How a pipe comes from one cell to another, from a snapshot alone: prepare, switch, drain.

    requested   the target's lanes and every ingest replica hold all that the pipe needs
       |        -> draining: the pipe's record names the target. Each event goes to one cell, which ingest chooses once;
       |           what the source has it works off, for its lanes run whatever is on their topics
    draining    first every ingest replica holds that record, then no request that knew the one before can still write,
       |           then the source's ends are noted: behind them nothing of the pipe follows
       |        -> done, when the source's readers have passed these ends, and all of the pipe behind them
       |        -> turned back, when the target is unstable and the source is not: the same the other way

Switching is a change of both cells: it waits while the interlocks refuse it for the target, and while anybody changes
the source or provisioning is paused there; that the source is unwell does not keep a pipe from leaving it.
"""

from datetime import timedelta
from typing import Final

from msgspec import Struct

from controlplane.interlocks import BELIEVED, clock, pauses_of, why_not
from controlplane.provisioner.decide import HOLDING_STATES, NO_INGEST, why_behind, why_not_held
from controlplane.provisioner.snapshot import RelocationView, Snapshot
from controlplane.provisioner.wanted import (
    Look,
    cell_key,
    destination_key,
    digest_key,
    pipe_key,
    plan_key,
    wanted_versions,
)

PATIENCE: Final = timedelta(minutes=30)  # one that cannot be switched within it is given up
LAST_REQUESTS: Final = timedelta(seconds=10)  # ingest waits 5 s for a report
LONGEST_SAID: Final = 300


class Switch(Struct, frozen=True):
    """requested -> draining."""

    relocation: int


class HoldAtTarget(Struct, frozen=True):
    """The target is to hold what comes to it, before anything does: the pipe keeps an order."""

    relocation: int


class NoteLeft(Struct, frozen=True):
    """No ingest replica sends to the source any more, requests under way apart."""

    relocation: int


class NoteEnds(Struct, frozen=True):
    """Remember where the source's ingest topic ends now."""

    relocation: int


class Finish(Struct, frozen=True):
    """draining -> done."""

    relocation: int


class TurnBack(Struct, frozen=True):
    """draining -> turned back."""

    relocation: int
    why: str


class GiveUp(Struct, frozen=True):
    """requested -> given up."""

    relocation: int
    why: str


class Say(Struct, frozen=True):
    """What it waits for."""

    relocation: int
    says: str


Step = HoldAtTarget | Switch | NoteLeft | NoteEnds | Finish | TurnBack | GiveUp | Say


def next_steps(snapshot: Snapshot) -> list[Step]:
    """At most one step for each relocation under way; none for one that has said already what it waits for."""
    if not snapshot.relocations:
        return []
    look = Look(snapshot, wanted_versions(snapshot))
    steps = [_drain(look, row) if row.state == "draining" else _prepare(look, row) for row in snapshot.relocations]
    said = {row.id: row.says for row in snapshot.relocations}
    return [step for step in steps if not isinstance(step, Say) or step.says != said[step.relocation]]


def _prepare(look: Look, row: RelocationView) -> Step:
    if row.unfit:
        return GiveUp(row.id, row.unfit)
    why = row.busy or _not_ready(look, row) or _refused(look, row)
    if not why:
        return Switch(row.id) if row.held or not row.in_order else HoldAtTarget(row.id)
    is_late = look.snapshot.now - row.asked_at > PATIENCE
    return GiveUp(row.id, f"not within {PATIENCE.seconds // 60} min: {why}") if is_late else _say(row, why)


def _not_ready(look: Look, row: RelocationView) -> str:
    target = next((cell for cell in look.snapshot.cells if cell.id == row.target), None)
    if target is None or target.problem or not target.bound or not target.release:
        why = (target.problem if target else "") or "it has no topics or no release yet"
        return f"waiting for cell {row.target}: {why}"
    end = look.end_of(_needed(look.snapshot, row))
    return "publishing" if end is None else why_not_held(target, end, look.snapshot.beats)


def _needed(snapshot: Snapshot, row: RelocationView) -> list[str]:
    plans = [
        plan_key(one.pipe, one.number) for one in snapshot.revisions if one.pipe == row.pipe and one.state != "failed"
    ]
    destinations = [destination_key(one.pipe, one.name) for one in snapshot.destinations if one.pipe == row.pipe]
    keys = [digest_key(one.name) for one in snapshot.keys if one.pipe == row.pipe]
    return [cell_key(row.target), *plans, *destinations, pipe_key(row.pipe), *keys]


def _refused(look: Look, row: RelocationView) -> str:
    source, target = look.snapshot.states[row.source], look.snapshot.states[row.target]
    if refusal := why_not("provision", target) or why_not("provision", source, protective=True):
        return f"{refusal.why}; again {refusal.again}"
    return f"provisioning is paused on cell {row.source}" if any(pauses_of("provision", source)) else ""


def _drain(look: Look, row: RelocationView) -> Step:
    if why := _why_back(look.snapshot, row):
        return _unless_leased(look, row, TurnBack(row.id, why))
    end = look.end_of([pipe_key(row.pipe)])
    if end is None:
        return _say(row, "publishing")
    if row.left_at is None:
        why = _not_left(look.snapshot, end)
        return _say(row, why) if why else NoteLeft(row.id)
    if look.snapshot.now - row.left_at < LAST_REQUESTS:
        return _say(row, f"requests that began before {clock(row.left_at)} may still write to cell {row.source}")
    if not row.ends:
        return NoteEnds(row.id)
    return _say(row, row.behind) if row.behind else _unless_leased(look, row, Finish(row.id))


def _why_back(snapshot: Snapshot, row: RelocationView) -> str:
    """A way back is not turned once more: it would go to and fro. Nor is one in order: the target has done nothing yet,
    and what it holds would come behind what the source is sent anew.
    """
    source, target = (snapshot.states[cell].verdict for cell in (row.source, row.target))
    is_unwell = target is not None and target.state == "unstable" and snapshot.now - target.at <= BELIEVED
    if row.is_way_back or row.held or target is None or not is_unwell:
        return ""
    if source is not None and source.state == "unstable":
        return ""
    return f"cell {row.target} is unstable since {clock(target.since)}: {'; '.join(target.reasons)}"


def _not_left(snapshot: Snapshot, end: int) -> str:
    replicas = [beat for beat in snapshot.beats if beat.kind == "ingest" and beat.state in HOLDING_STATES]
    return why_behind(replicas, end) if replicas else NO_INGEST


def _unless_leased(look: Look, row: RelocationView, step: Step) -> Step:
    """What goes back or ends is stopped by nothing but another change under way."""
    refusals = [why_not("provision", look.snapshot.states[cell], protective=True) for cell in (row.source, row.target)]
    refusal = next((one for one in refusals if one is not None), None)
    return step if refusal is None else _say(row, f"{refusal.why}; again {refusal.again}")


def _say(row: RelocationView, why: str) -> Say:
    return Say(row.id, why[:LONGEST_SAID])
