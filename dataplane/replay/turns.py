"""Turns of the runs of a cell (replays, shadow runs): the next action of each, and whose turn it is. Pure."""

from collections.abc import Iterable
from typing import Literal, NamedTuple


class RunStep(NamedTuple):
    """Next action: resolve the offsets, run a job, wait for a reason, or end (with a reason, unless all is done)."""

    action: Literal["resolve", "run", "wait", "end"]
    reason: str = ""


class WaitingRun(NamedTuple):
    """Run that has work to do and no reason to wait.

    group:  of the runs of a group, only the first one takes turns
    order:  the lowest one is the first of its group
    due_s:  time (monotonic) before which it does nothing, for its rate or after an error
    last_s: time of its last turn; 0 if it had none
    """

    run: str
    group: str
    order: int
    due_s: float
    last_s: float


def next_turn(runs: Iterable[WaitingRun], now_s: float) -> str:
    """Return the run whose turn it is; "" if none is due.

    Groups take turns with each other: first the one whose last turn is the longest ago, then the one that came first.
    So a slow or long run delays only the later ones of its group.
    """
    due = [one for one in _first_of_groups(runs).values() if one.due_s <= now_s]
    return min(due, key=lambda one: (one.last_s, one.order, one.run)).run if due else ""


def behind_others(runs: Iterable[WaitingRun]) -> dict[str, str]:
    """Return the runs that wait for an earlier one of their group, each with the id of that one."""
    runs = list(runs)
    first = _first_of_groups(runs)
    return {one.run: first[one.group].run for one in runs if first[one.group].run != one.run}


def _first_of_groups(runs: Iterable[WaitingRun]) -> dict[str, WaitingRun]:
    first: dict[str, WaitingRun] = {}
    for one in sorted(runs, key=lambda one: (one.order, one.run)):
        first.setdefault(one.group, one)
    return first
