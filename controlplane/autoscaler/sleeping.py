"""Decides if a cell dedicated to one tenant sleeps: without lanes and application, until a message arrives. Pure.

It falls asleep when no message arrived for the time that its policy states and none is left over: no backlog, none
held, none scheduled for a retry. Ingest stores later messages as usual, and they wake the cell: the first ones wait
until lanes run. Once a day it wakes without need, because Kafka drops the offsets of a group that has had no member for
a week (KIP-211), and because a fault that stops an application from starting should show before a message waits for it.
"""

from typing import Final

from msgspec import Struct

WAKES_EVERY_S: Final = 24 * 3_600.0


class SleepCandidate(Struct, frozen=True):
    """A cell that sleeps, or may.

    is_asleep:      it has no lanes now
    asleep_s:       seconds for which it has slept, if it does
    sleeps_after_s: idle seconds after which its policy lets it sleep; None: it must not sleep
    idle_s:         seconds for which it has been awake without arriving messages and without backlog
    backlog:        messages that its lanes have not settled
    open_work:      other work that needs its lanes, in words; "" if there is none
    """

    is_asleep: bool
    sleeps_after_s: int | None
    asleep_s: float = 0.0
    idle_s: float = 0.0
    backlog: int = 0
    open_work: str = ""


class SleepChange(Struct, frozen=True):
    """The desired state of the cell, asleep or awake, and why, in words."""

    asleep: bool
    why: str


def next_sleep_change(rest: SleepCandidate) -> SleepChange | None:
    """Return the desired state of the cell; None if it is awake and stays awake."""
    if rest.is_asleep:
        why = _why_wake(rest)
        return SleepChange(asleep=not why, why=why or "no messages arrive: it sleeps until the next one")
    if rest.sleeps_after_s is None or rest.open_work or rest.backlog or rest.idle_s < rest.sleeps_after_s:
        return None
    return SleepChange(asleep=True, why=f"no message arrived for {rest.sleeps_after_s} s: it sleeps until the next one")


def _why_wake(rest: SleepCandidate) -> str:
    if rest.backlog:
        return f"{rest.backlog} {'message has' if rest.backlog == 1 else 'messages have'} arrived"
    if rest.open_work:
        return rest.open_work
    if rest.sleeps_after_s is None:
        return "its policy no longer allows sleep"
    return "it wakes once a day, to check that it can start" if rest.asleep_s >= WAKES_EVERY_S else ""
