"""Whether a cell that is kept for one tenant sleeps: no lanes, no application, until something comes. Pure.

It falls asleep when nothing came for as long as its policy says and nothing is left over, neither before lanes nor held
or waiting for a time. What comes then is stored by ingest as ever, and is what wakes it: the first messages wait until
lanes run. Once a day it wakes without need: Kafka forgets how far a group has read that nobody has been in for a week
(KIP-211), and that an application does not start any more is better found out before a message waits for it.
"""

from typing import Final

from msgspec import Struct

WAKES_EVERY_S: Final = 24 * 3_600.0


class Rest(Struct, frozen=True):
    """A cell that sleeps, or may.

    is_asleep:      whether it has no lanes now          asleep_s: and for how long, if so
    sleeps_after_s: what its policy says; None: it is not to sleep
    idle_s:         for how long it is awake, nothing came, and nothing was left over
    backlog:        messages that lie before its lanes
    errand:         what else its lanes are needed for, in words; "" if nothing
    """

    is_asleep: bool
    sleeps_after_s: int | None
    asleep_s: float = 0.0
    idle_s: float = 0.0
    backlog: int = 0
    errand: str = ""


class Turn(Struct, frozen=True):
    """To sleep, or to be awake; why, in words."""

    asleep: bool
    why: str


def next_turn(rest: Rest) -> Turn | None:
    """What the cell should be now; None if it is awake, and stays so."""
    if rest.is_asleep:
        why = _why_wake(rest)
        return Turn(asleep=not why, why=why or "nothing comes: it sleeps, and the next message wakes it")
    if rest.sleeps_after_s is None or rest.errand or rest.backlog or rest.idle_s < rest.sleeps_after_s:
        return None
    return Turn(asleep=True, why=f"nothing came for {rest.sleeps_after_s} s: it sleeps until something does")


def _why_wake(rest: Rest) -> str:
    if rest.backlog:
        return f"{rest.backlog} {'message has' if rest.backlog == 1 else 'messages have'} come"
    if rest.errand:
        return rest.errand
    if rest.sleeps_after_s is None:
        return "it is not to sleep any more"
    return "it wakes once a day, to be seen to start" if rest.asleep_s >= WAKES_EVERY_S else ""
