"""Whether a pipe that is let in by shares is given more, waits, or is taken back: from its figures alone. Pure.

There is nothing to compare with, so its figures count as they are; what is wrong with the cell shows in the cell's
verdict, and the interlocks keep the share where it is meanwhile.
"""

from datetime import datetime
from typing import Final

from msgspec import Struct

from dataplane.names import WHOLE
from mgmt.provisioning.admission import AdmissionPolicy
from mgmt.queries.ramps import Figures

PENSTOCK: Final = "Penstock"  # held it by itself


class AdmissionView(Struct, frozen=True):
    """A pipe that is let in by shares.

    waiting: messages that are admitted by now and have not come back yet   beyond: held, and not admitted
    reason:  what its row says it waits for
    """

    pipe: str
    cell: str
    active: bool
    share: int
    step_at: datetime | None
    held_by: str
    reason: str
    figures: Figures
    waiting: int = 0
    beyond: int = 0


class Begin(Struct, frozen=True):
    """Its first messages have come: the step counts from now on."""


class Admit(Struct, frozen=True):
    """Let so many percent of the keys in."""

    share: int


class TakeBack(Struct, frozen=True):
    """Let only so many percent in again, and tell people why."""

    share: int
    reason: str


class End(Struct, frozen=True):
    """Everything is let in and has come back."""


class Stay(Struct, frozen=True):
    """Stay, and until what."""

    reason: str


def next_step(view: AdmissionView, policy: AdmissionPolicy, now: datetime) -> Begin | Admit | TakeBack | End | Stay:
    """What follows for one pipe. Going back waits for nothing; one that went back waits for a person."""
    if not view.held_by and (why := _why_back(view, policy)):
        return TakeBack(max((step for step in policy.steps if step < view.share), default=0), why)
    if view.share and view.step_at is None and view.active and (view.figures.taken or view.beyond):
        return Begin()
    if why := _why_stay(view, policy, now):
        return Stay(why)
    return Admit(next(step for step in policy.steps if step > view.share)) if view.share < WHOLE else End()


def _why_stay(view: AdmissionView, policy: AdmissionPolicy, now: datetime) -> str:
    here = f"{view.share} % of its keys are let in"
    if view.held_by:
        return view.reason if view.held_by == PENSTOCK else f"{here}: held by {view.held_by}"
    if not view.active:
        return f"{here} until the pipe is active again"
    if view.step_at is None:
        return f"{here}; it waits for its first messages"
    return _why_try_on(view, view.step_at, policy, now, here) if view.share else ""


def _why_try_on(view: AdmissionView, step_at: datetime, policy: AdmissionPolicy, now: datetime, here: str) -> str:
    due, latest = step_at + policy.hold, step_at + policy.patience
    if now < due:
        return f"{here} until {due:%H:%M:%S} UTC"
    if view.figures.taken < policy.evidence and now < latest:
        return f"{here} until {policy.evidence} messages have passed; at the latest until {latest:%H:%M:%S} UTC"
    return f"{here}; what was held of them is on its way" if view.waiting else ""


def _why_back(view: AdmissionView, policy: AdmissionPolicy) -> str:
    figures = view.figures
    of_all = f"of {figures.taken} messages"
    if figures.failed > max(policy.few, policy.failing * figures.taken):
        return f"{figures.failed} {of_all} failed while {view.share} % of its keys were let in"
    if figures.lost:
        return f"{figures.lost} {of_all} were lost while {view.share} % of its keys were let in"
    if figures.stuck > max(policy.few, policy.failing * figures.taken):
        return f"{figures.stuck} {of_all} wait before the route while {view.share} % of its keys were let in"
    return ""
