"""Run the steps of a search: send at a rate, let it settle, measure, and report the outcome."""

import time
from collections.abc import Callable
from typing import Final

import psutil
from msgspec import Struct

from controlplane.capacity_test.judge import RateStep, outcome_of
from controlplane.capacity_test.search import SearchBounds, SearchStep, next_rate
from controlplane.capacity_test.traffic import TrafficProcesses
from controlplane.capacity_test.watch import CellWatch, GroupCounters, between

SETTLE_S: Final = 3.0  # time from a new rate to its measurement
START_LIMIT_S: Final = 60.0
DRAIN_S: Final = 60.0
Say = Callable[[str], None]


class CapacityTestError(Exception):
    """Raised when a capacity test has no result; the message says why and what to do."""


class CapacityTestRequest(Struct, frozen=True):
    """Parameters of a capacity test.

    hold_s:        seconds for which each step is measured
    limit_s:       seconds that the whole search may take
    batch:         events in a request
    allow_traffic: True if the cell may have other traffic meanwhile
    """

    cell: str
    hold_s: float = 8.0
    limit_s: float = 600.0
    batch: int = 1
    allow_traffic: bool = False
    bounds: SearchBounds = SearchBounds()


def search(
    request: CapacityTestRequest, watch: CellWatch, ends: TrafficProcesses, say: Say
) -> list[tuple[SearchStep, RateStep]]:
    """Run the search; return every step with its measurement.

    say: called with a progress line after each step
    Raises CapacityTestError if ingest does not accept the key, or processes of the cell change during a step.
    """
    done: list[tuple[SearchStep, RateStep]] = []
    ends.send(request.bounds.least)
    ends.reported()
    wait(
        lambda: _answered(ends),
        START_LIMIT_S,
        "ingest does not accept the test's API key: check the heartbeats of the ingest replicas",
    )
    began = time.monotonic()
    while (rate := next_rate([tried for tried, _ in done], request.bounds)) is not None:
        if done and time.monotonic() - began > request.limit_s:
            say(f"time limit of {request.limit_s:.0f} s reached: stopping the search")
            break
        step = _step(rate, request, watch, ends)
        outcome = outcome_of(step)
        done.append((SearchStep(min(step.acked, rate) if outcome == "sender" else rate, outcome), step))
        say(_line(step, outcome))
        if outcome == "behind":
            ends.send(0)
            drained(watch)
    return done


def _answered(ends: TrafficProcesses) -> bool:
    report = ends.reported()
    return report.acked > 0 and not report.refused


def _step(rate: float, request: CapacityTestRequest, watch: CellWatch, ends: TrafficProcesses) -> RateStep:
    """Send at a rate, let it settle, and measure it."""
    ends.send(rate)
    time.sleep(SETTLE_S)
    ends.reported()
    before, receiver_s = watch.moment(), ends.receiver_cpu_s()
    time.sleep(request.hold_s)
    report, after = ends.reported(), watch.moment()
    figures, machine = between(before, after, report.acked)
    if _replaced(before, after):
        raise CapacityTestError(
            "processes of the cell started or exited during the measurement: run the test again when the cell is stable"
        )
    return RateStep(
        wanted=rate,
        acked=report.acked / report.span_s,
        refused=report.refused,
        ack_p95_us=report.ack_p95_us,
        sender_cpu=report.cpu_s / report.span_s,
        receiver_cpu=(ends.receiver_cpu_s() - receiver_s) / report.span_s,
        machine=machine,
        cores=psutil.cpu_count() or 1,
        groups=figures,
    )


def _line(step: RateStep, outcome: str) -> str:
    """Return the progress line of one step."""
    groups = ", ".join(
        f"{group} {figure.cpu:.2f} cores, {figure.backlog} waiting" if group != "ingest" else f"ingest {figure.cpu:.2f}"
        for group, figure in step.groups.items()
    )
    return (
        f"{step.wanted:7.0f}/s  {outcome:<6}  {step.acked:.0f}/s ACKed within {step.ack_p95_us / 1000:.0f} ms (p95); "
        f"{groups}; machine {step.machine:.0%}"
    )


def _replaced(before: GroupCounters, after: GroupCounters) -> bool:
    """Return True if the groups' processes changed between two times."""

    def pids(moment: GroupCounters) -> dict[str, dict[str, int]]:
        return {group: {name: clock.pid for name, clock in one.lanes.items()} for group, one in moment.groups.items()}

    return pids(before) != pids(after)


def drained(watch: CellWatch) -> bool:
    """Wait at most DRAIN_S for an empty backlog; return True if it is empty."""
    until = time.monotonic() + DRAIN_S
    while watch.backlog():
        if time.monotonic() > until:
            return False
        time.sleep(0.5)
    return True


def wait(condition: Callable[[], bool], limit_s: float, otherwise: str) -> None:
    """Wait for a condition. Raises CapacityTestError with the text `otherwise` after `limit_s`."""
    until = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > until:
            raise CapacityTestError(otherwise)
        time.sleep(0.5)
