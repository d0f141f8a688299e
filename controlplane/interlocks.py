"""The interlocks: decide if a controller may change a cell now, and if not, why and when it may ask again. Pure.

The controllers never call each other: each applies these rules to the same rows before it changes anything.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final, Literal

from msgspec import Struct

from dataplane.names import INGEST_GROUP

ControllerName = Literal["provision", "deploy", "scale"]
RefusalKind = Literal[
    "paused", "cell-busy", "cell-unstable", "cell-unknown", "cell-asleep", "verdict-outdated", "lease-lost"
]
WORDS: Final[dict[str, str]] = {"provision": "provisioning", "deploy": "deploying", "scale": "scaling"}

# The protective change of these two controllers is to undo their own, and a pause does not stop it. The Autoscaler's is
# to scale out, which is just what a person who pauses it wants to stop.
UNDOING: Final = ("provision", "deploy")
# A tenant cannot act on the lanes that an Observer's reason names.
PUBLIC_REASONS: Final[dict[RefusalKind, str]] = {
    "cell-unstable": "the cell is recovering from a fault; the change continues when it is stable",
    "cell-unknown": "the state of the cell is being checked; the change continues when it is stable",
    "verdict-outdated": "the state of the cell is being checked; the change continues when it is stable",
}
VERDICT_MAX_AGE: Final = timedelta(seconds=60)  # a verdict not renewed for longer says nothing about the present


class PauseView(Struct, frozen=True):
    """An open pause. `cell` None: in all cells; `until` None: until a person ends it."""

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
    """The Observer's verdict on a cell, as of `at`."""

    state: str
    reasons: list[str]
    since: datetime
    at: datetime


class CellState(Struct, frozen=True):
    """Everything that the interlocks need to know about a cell. `verdict` None: the Observer has not judged it yet."""

    cell: str
    pauses: list[PauseView]
    lease: LeaseView | None
    verdict: VerdictView | None
    now: datetime


class Refusal(Struct, frozen=True):
    """Type of a refusal's reason, the reason, and when to ask again; the last two are texts for people."""

    kind: RefusalKind
    why: str
    again: str

    @property
    def public_reason(self) -> str:
        """The reason as tenants read it: without the lanes of a cell."""
        return PUBLIC_REASONS.get(self.kind, self.why)


def refusal_of(
    controller: ControllerName, view: CellState, *, protective: bool = False, repairs: bool = False
) -> Refusal | None:
    """Return why `controller` may not take the cell's lease now, or None if it may.

    An unstable cell does not stop a `protective` change (rollback, hold, drain, scale-out), which protects it from
    that, nor one that `repairs` it, as a person said. Two controllers never change a cell at once, protective or not.
    """
    paused = None if protective and controller in UNDOING else _paused(controller, view)
    return paused or _leased(view) or (None if protective or repairs else _unstable(view))


def pauses_of(controller: str, view: CellState) -> Iterable[PauseView]:
    """Yield the pauses that stop the controller on this cell at this moment."""
    for pause in view.pauses:
        here = pause.cell in (None, view.cell)
        if here and pause.controller == controller and (pause.until is None or pause.until > view.now):
            yield pause


def _paused(controller: ControllerName, view: CellState) -> Refusal | None:
    for pause in pauses_of(controller, view):
        until = f" until {clock(pause.until)}" if pause.until else ""
        where = f" on {name_of(pause.cell)}" if pause.cell else ""
        return Refusal(
            kind="paused",
            why=f"{WORDS[controller]} is paused{where} by {pause.by}{until}: {pause.reason.rstrip('.')}",
            again=f"at {clock(pause.until)}, or when a person ends the pause" if pause.until else "when the pause ends",
        )
    return None


def _leased(view: CellState) -> Refusal | None:
    lease = view.lease
    if lease is None or not lease.holder or lease.until <= view.now:
        return None
    return Refusal(
        kind="cell-busy",
        why=f"{WORDS[lease.holder]} is changing {name_of(view.cell)}: {lease.what}",
        again=f"when that is done, at the latest at {clock(lease.until)}",
    )


def _unstable(view: CellState) -> Refusal | None:
    verdict = view.verdict
    if verdict is None:
        return None
    if view.now - verdict.at > VERDICT_MAX_AGE:
        why = f"cell {view.cell} has not been judged since {clock(verdict.at)}"
        return Refusal("verdict-outdated", why, "when the Observer judges it again")
    if verdict.state == "stable":
        return None
    reasons = "; ".join(verdict.reasons) or "no reason is known"
    why = f"cell {view.cell} is {verdict.state} since {clock(verdict.since)}: {reasons}"
    kind: RefusalKind = "cell-unknown" if verdict.state == "unknown" else "cell-unstable"
    return Refusal(kind, why, "when the cell is stable again")


def name_of(cell: str) -> str:
    """Return the name of a cell, or of ingest, as texts for people show it."""
    return cell if cell == INGEST_GROUP else f"cell {cell}"


def clock(moment: datetime) -> str:
    """Format a moment for people, such as `2026-01-31 12:00:00 UTC`."""
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"
