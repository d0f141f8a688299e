"""The steps of a search as they are made: send, let it settle, measure, say what came of it."""

import time
from collections.abc import Callable
from typing import Final

import psutil
from msgspec import Struct

from controlplane.rating.judge import Step, outcome_of
from controlplane.rating.search import Bounds, Tried, next_rate
from controlplane.rating.traffic import Ends
from controlplane.rating.watch import Moment, Watch, between

SETTLE_S: Final = 3.0  # from a new rate on until it is measured
HEARD_S: Final = 60.0
DRAIN_S: Final = 60.0
Say = Callable[[str], None]


class RatingError(Exception):
    """Nothing was rated; why, and what to do."""


class Wish(Struct, frozen=True):
    """What the caller asked for.

    hold_s:  how long each step is measured         limit_s: how long the search may take, all steps together
    batch:   events in a request                    beside:  whether the cell may have other traffic meanwhile
    """

    cell: str
    hold_s: float = 8.0
    limit_s: float = 600.0
    batch: int = 1
    beside: bool = False
    bounds: Bounds = Bounds()


def search(wish: Wish, watch: Watch, ends: Ends, say: Say) -> list[tuple[Tried, Step]]:
    """Every step of the search with what it was judged by."""
    done: list[tuple[Tried, Step]] = []
    ends.send(wish.bounds.least)
    ends.told()
    wait(lambda: _answered(ends), HEARD_S, "ingest does not know its key: see the heartbeats of the replicas")
    began = time.monotonic()
    while (rate := next_rate([tried for tried, _ in done], wish.bounds)) is not None:
        if done and time.monotonic() - began > wish.limit_s:
            say(f"{wish.limit_s:.0f} s are over: the search ends here")
            break
        step = _step(rate, wish, watch, ends)
        outcome = outcome_of(step)
        done.append((Tried(min(step.acked, rate) if outcome == "sender" else rate, outcome), step))
        say(_line(step, outcome))
        if outcome == "behind":
            ends.send(0)
            drained(watch)
    return done


def _answered(ends: Ends) -> bool:
    told = ends.told()
    return told.acked > 0 and not told.refused


def _step(rate: float, wish: Wish, watch: Watch, ends: Ends) -> Step:
    """Send at that rate, let it settle, and measure."""
    ends.send(rate)
    time.sleep(SETTLE_S)
    ends.told()
    before, receiver_s = watch.moment(), ends.receiver_cpu_s()
    time.sleep(wish.hold_s)
    told, after = ends.told(), watch.moment()
    figures, machine = between(before, after, told.acked)
    if _replaced(before, after):
        raise RatingError("processes of the cell came or went while it was measured: run it again when it is quiet")
    return Step(
        wanted=rate,
        acked=told.acked / told.span_s,
        refused=told.refused,
        ack_p95_us=told.ack_p95_us,
        sender_cpu=told.cpu_s / told.span_s,
        receiver_cpu=(ends.receiver_cpu_s() - receiver_s) / told.span_s,
        machine=machine,
        cores=psutil.cpu_count() or 1,
        groups=figures,
    )


def _line(step: Step, outcome: str) -> str:
    """One step for whoever watches."""
    groups = ", ".join(
        f"{group} {figure.cpu:.2f} cores, {figure.backlog} waiting" if group != "ingest" else f"ingest {figure.cpu:.2f}"
        for group, figure in step.groups.items()
    )
    return (
        f"{step.wanted:7.0f}/s  {outcome:<6}  {step.acked:.0f}/s ACKed within {step.ack_p95_us / 1000:.0f} ms (p95); "
        f"{groups}; machine {step.machine:.0%}"
    )


def _replaced(before: Moment, after: Moment) -> bool:
    """Whether other processes work at the end than at the beginning."""

    def pids(moment: Moment) -> dict[str, dict[str, int]]:
        return {group: {name: clock.pid for name, clock in one.lanes.items()} for group, one in moment.groups.items()}

    return pids(before) != pids(after)


def drained(watch: Watch) -> bool:
    until = time.monotonic() + DRAIN_S
    while watch.backlog():
        if time.monotonic() > until:
            return False
        time.sleep(0.5)
    return True


def wait(condition: Callable[[], bool], limit_s: float, otherwise: str) -> None:
    until = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > until:
            raise RatingError(otherwise)
        time.sleep(0.5)
