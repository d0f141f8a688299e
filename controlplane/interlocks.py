"""Whether a controller may change a cell now, and if not, why and when it may ask again. Pure.

The controllers never call each other: each asks here, about the same rows, before it changes anything.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final, Literal

from msgspec import Struct

from dataplane.names import INGEST_GROUP

Controller = Literal["provision", "deploy", "scale"]
WORDS: Final[dict[str, str]] = {"provision": "provisioning", "deploy": "deploying", "scale": "scaling"}

# What these two do to protect is to undo what they did, and a pause does not keep them from that. What the autoscaler
# has of the kind is scaling out, and that is what somebody who pauses it wants to stop.
UNDOING: Final = ("provision", "deploy")
BELIEVED: Final = timedelta(seconds=60)  # a verdict that nobody has renewed for longer says nothing about now


class PauseView(Struct, frozen=True):
    """An open pause. `cell` None: everywhere; `until` None: until somebody ends it."""

    controller: str
    by: str
    reason: str
    until: datetime | None = None
    cell: str | None = None


class LeaseView(Struct, frozen=True):
    """The cell's lease; it is free when `holder` is empty or `until` is past."""

    holder: str
    what: str
    until: datetime


class VerdictView(Struct, frozen=True):
    """What the Observer made of the cell when it last looked, `at`."""

    state: str
    reasons: list[str]
    since: datetime
    at: datetime


class CellState(Struct, frozen=True):
    """All that the interlocks ask about a cell. `verdict` None: nobody has looked at it yet."""

    cell: str
    pauses: list[PauseView]
    lease: LeaseView | None
    verdict: VerdictView | None
    now: datetime


class Refusal(Struct, frozen=True):
    """Why not now, and when it is worth asking again; both for people."""

    why: str
    again: str


def why_not(controller: Controller, view: CellState, *, protective: bool = False) -> Refusal | None:
    """None if `controller` may take the cell's lease now.

    `protective` deeds (rollback, hold, drain, scale-out) are not stopped by what they protect from, an unstable cell.
    Nothing is done by two at a time, protective or not.
    """
    undoes = protective and controller in UNDOING
    return (None if undoes else _paused(controller, view)) or _leased(view) or (None if protective else _unwell(view))


def pauses_of(controller: str, view: CellState) -> Iterable[PauseView]:
    """The pauses that hold the controller back on this cell at this moment."""
    for pause in view.pauses:
        here = pause.cell in (None, view.cell)
        if here and pause.controller == controller and (pause.until is None or pause.until > view.now):
            yield pause


def _paused(controller: Controller, view: CellState) -> Refusal | None:
    for pause in pauses_of(controller, view):
        until = f" until {clock(pause.until)}" if pause.until else ""
        where = f" on {name_of(pause.cell)}" if pause.cell else ""
        return Refusal(
            why=f"{WORDS[controller]} is paused{where} by {pause.by}{until}: {pause.reason}",
            again=f"at {clock(pause.until)}, or when somebody ends the pause" if pause.until else "when the pause ends",
        )
    return None


def _leased(view: CellState) -> Refusal | None:
    lease = view.lease
    if lease is None or not lease.holder or lease.until <= view.now:
        return None
    return Refusal(
        why=f"{WORDS[lease.holder]} is changing {name_of(view.cell)}: {lease.what}",
        again=f"when that is done, at the latest at {clock(lease.until)}",
    )


def _unwell(view: CellState) -> Refusal | None:
    verdict = view.verdict
    if verdict is None:
        return None
    if view.now - verdict.at > BELIEVED:
        return Refusal(f"nobody has looked at cell {view.cell} since {clock(verdict.at)}", "when it is looked at again")
    if verdict.state == "stable":
        return None
    said = "; ".join(verdict.reasons) or "no reason is known"
    why = f"cell {view.cell} is {verdict.state} since {clock(verdict.since)}: {said}"
    return Refusal(why, "when the cell is stable again")


def name_of(cell: str) -> str:
    """What a lease, a pause or a deed is about, for people."""
    return cell if cell == INGEST_GROUP else f"cell {cell}"


def clock(moment: datetime) -> str:
    """A moment for people."""
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"
