"""Decides if an admission gets a larger share, keeps its share, or is reduced: from the pipe's figures alone. Pure.

A new pipe has no other revision to compare with, so its figures count as they are; faults of the cell show in the
cell's verdict, and the interlocks keep the share unchanged meanwhile.
"""

from datetime import datetime
from typing import Final

from msgspec import Struct

from dataplane.names import ALL_KEYS_PERCENT
from mgmt.ramps.admission_schedule import AdmissionPolicy
from mgmt.ramps.queries import RampFigures

PENSTOCK: Final = "Penstock"  # the holder of an admission that was held automatically


class PipeAdmission(Struct, frozen=True):
    """A pipe in admission.

    share:   percent of the keys that are admitted
    waiting: held messages of admitted keys that have not returned to the pipe yet
    beyond:  held messages of keys that are not admitted
    reason:  the reason for waiting that its row has now
    """

    pipe: str
    cell: str
    active: bool
    share: int
    step_at: datetime | None
    held_by: str
    reason: str
    figures: RampFigures
    waiting: int = 0
    beyond: int = 0


class StartAdmission(Struct, frozen=True):
    """Start the time of the step: the pipe's first messages have arrived."""


class AdmitShare(Struct, frozen=True):
    """Admit so many percent of the keys."""

    share: int


class ReduceAdmission(Struct, frozen=True):
    """Reduce the admission to so many percent of the keys, and report why."""

    share: int
    reason: str


class FinishAdmission(Struct, frozen=True):
    """End the admission: all keys are admitted, and all held messages have returned."""


class KeepAdmission(Struct, frozen=True):
    """Keep the share. `reason`: what the admission waits for."""

    reason: str


def next_step(
    view: PipeAdmission, policy: AdmissionPolicy, now: datetime
) -> StartAdmission | AdmitShare | ReduceAdmission | FinishAdmission | KeepAdmission:
    """Return the next step of one admission. A reduction waits for nothing; a reduced admission waits for a person."""
    if not view.held_by and (why := _why_reduce(view, policy)):
        return ReduceAdmission(max((step for step in policy.steps if step < view.share), default=0), why)
    if view.share and view.step_at is None and view.active and (view.figures.taken or view.beyond):
        return StartAdmission()
    if why := _why_keep(view, policy, now):
        return KeepAdmission(why)
    if view.share == ALL_KEYS_PERCENT:
        return FinishAdmission()
    return AdmitShare(next(step for step in policy.steps if step > view.share))


def _why_keep(view: PipeAdmission, policy: AdmissionPolicy, now: datetime) -> str:
    here = f"{view.share} % of its keys are admitted"
    if view.held_by:
        return view.reason if view.held_by == PENSTOCK else f"{here}: held by {view.held_by}"
    if not view.active:
        return f"{here} until the pipe is active again"
    if view.step_at is None:
        return f"{here}; it waits for its first messages"
    return _why_step_is_open(view, view.step_at, policy, now, here) if view.share else ""


def _why_step_is_open(view: PipeAdmission, step_at: datetime, policy: AdmissionPolicy, now: datetime, here: str) -> str:
    due, latest = step_at + policy.hold, step_at + policy.patience
    if now < due:
        return f"{here} until {due:%H:%M:%S} UTC"
    if view.figures.taken < policy.evidence and now < latest:
        return f"{here} until {policy.evidence} messages have been processed, or until {latest:%H:%M:%S} UTC"
    return f"{here}; their held messages are being released" if view.waiting else ""


def _why_reduce(view: PipeAdmission, policy: AdmissionPolicy) -> str:
    figures = view.figures
    of_all = f"of {figures.taken} messages"
    if figures.failed > max(policy.few, policy.failing * figures.taken):
        return f"{figures.failed} {of_all} failed while {view.share} % of its keys were admitted"
    if figures.lost:
        return f"{figures.lost} {of_all} were lost while {view.share} % of its keys were admitted"
    if figures.stuck > max(policy.few, policy.failing * figures.taken):
        return f"{figures.stuck} {of_all} have not reached the route while {view.share} % of its keys were admitted"
    return ""
