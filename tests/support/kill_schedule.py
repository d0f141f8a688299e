"""A schedule of SIGKILLs over a whole box, and the restarts that each kill allows.

`STARTS_AGAIN` is the rule: a kill may restart only the processes that are named there.
"""

import contextlib
import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import psutil

from controlplane.compute.files import ComputeFiles, StateFileError
from controlplane.compute.port import RunningApplication
from dataplane.names import LANE_KINDS
from localbox.demo.logs import ReceivedDelivery
from localbox.testing import Box
from tests.support.watch import Heartbeats

CELL: Final = "c1"
NO_PROCESS_S: Final = 180.0  # longer than the longest back-off and the start of a Spark application
APPLICATION: Final = "application"
LANES: Final = tuple(f"{kind}-0" for kind in LANE_KINDS)
SERVICES: Final = ("kafka", "postgres", "redis")
PROGRAMS: Final = (
    *SERVICES,
    "web",
    "echo",
    "table-queries",
    "worker",
    "beat",
    "observer",
    "keeper",
    "ingest-1",
    "ingest-2",
)
WHOLE_APPLICATION: Final = frozenset({APPLICATION, *LANES})
# A kill, and what it restarts: the killed process and its children.
STARTS_AGAIN: Final[Mapping[str, frozenset[str]]] = {
    **{name: frozenset({name}) for name in PROGRAMS},
    **{f"lane {name}": frozenset({name}) for name in LANES},
    "driver": WHOLE_APPLICATION,  # the JVM has nothing left to run and exits, and the lanes with it
    "jvm": WHOLE_APPLICATION,  # of Spark: driver and lanes are its children
}
# Only these kills interrupt requests to destinations; after any other kill, nothing is delivered twice.
ENDS_SENDS: Final = frozenset({*(f"lane {name}" for name in LANES if name.startswith("transmit")), "driver", "jvm"})
EVERY_KIND: Final = (*PROGRAMS[:-1], "lane process-0", "lane transmit-0", "driver", "jvm")
EVERYTHING: Final = tuple(STARTS_AGAIN)


class Kill(NamedTuple):
    """One kill: target, process and wall-clock time."""

    name: str
    pid: int
    at_us: int


def rounds(targets: Sequence[str], seed: int) -> Iterator[list[str]]:
    """Yield all targets in a random order, round after round."""
    chance = random.Random(seed)
    while True:
        order = list(targets)
        chance.shuffle(order)
        yield order


class BoxProcesses:
    """Processes of a box by their names in the schedule, and the number of starts of each."""

    def __init__(self, box: Box) -> None:
        self._box = box
        self._files = ComputeFiles(box.var)
        self._heartbeats = Heartbeats(box.env["PENSTOCK_KAFKA"], CELL)
        self._seen: dict[str, set[tuple[str, int]]] = {}  # of each lane: incarnation and pid
        self._earlier: Counter[str] = Counter()
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="heartbeats", daemon=True)
        self._thread.start()

    def pid(self, name: str) -> int:
        """Return the pid of a target's living process. Raises LookupError while it has none."""
        if name in PROGRAMS:
            return self._box.pid(name)
        application = self._application()
        if name == "jvm":
            return application.pid
        children = application.children(recursive=True)
        if name == "driver":
            found = [one.pid for one in children if _runs(one, "cell.py")]
        else:
            beat = self._heartbeats.latest.get(name.removeprefix("lane "))
            found = [one.pid for one in children if beat is not None and one.pid == beat.pid]
        if not found:
            raise LookupError(f"{name} has no process at this moment")
        return found[0]

    def starts(self) -> Counter[str]:
        """Return the number of restarts: of programs, the application and each lane; since `begin`, if it was called.

        The restarts of a lane are those that this object has seen.
        """
        found = self._since_ready()
        found.subtract(self._earlier)
        return found

    def begin(self) -> None:
        """Count restarts from now on."""
        self._earlier = self._since_ready()

    def lanes_run(self) -> bool:
        """Return True if every lane of the running application sends heartbeats now."""
        running, beats = self._running(), self._heartbeats.latest
        fresh_us = (time.time_ns() // 1_000) - 5_000_000
        return running is not None and all(
            (beat := beats.get(name)) is not None
            and (beat.incarnation, beat.state) == (running.incarnation, "running")
            and beat.at_us > fresh_us
            for name in LANES
        )

    def close(self) -> None:
        """Stop the watching thread."""
        self._ending.set()
        self._thread.join(10)
        self._heartbeats.close()

    def _since_ready(self) -> Counter[str]:
        found = Counter({name: self._box.entry(name).restarts for name in PROGRAMS})
        running = self._running()
        found[APPLICATION] = (running.starts if running else 0) - 1
        found.update({name: len(seen) - 1 for name, seen in self._seen.copy().items()})
        return found

    def _watch(self) -> None:
        while not self._ending.is_set():
            self._heartbeats.refresh()
            for name, beat in self._heartbeats.latest.copy().items():
                if name in LANES:
                    self._seen.setdefault(name, set()).add((beat.incarnation, beat.pid))

    def _running(self) -> RunningApplication | None:
        try:
            return self._files.running(CELL)
        except StateFileError:
            return None

    def _application(self) -> psutil.Process:
        running = self._running()
        try:
            return psutil.Process(running.pid if running and running.pid else -1)
        except (psutil.Error, ValueError) as exc:
            raise LookupError("the application has no process at this moment") from exc


def _runs(process: psutil.Process, word: str) -> bool:
    with contextlib.suppress(psutil.Error):
        return any(word in part for part in process.cmdline())
    return False


def run_schedule(
    processes: BoxProcesses,
    targets: Sequence[str],
    *,
    seed: int,
    every_s: float,
    kills: int,
    on_kill: Callable[[Kill], None],
) -> list[Kill]:
    """Kill `kills` times, once every `every_s`: the first remaining target of a round that has a process.

    Raises TimeoutError with the remaining targets if none of them gets a process within `NO_PROCESS_S`.
    """
    done: list[Kill] = []
    left: list[str] = []
    order = rounds(targets, seed)
    due = time.monotonic() + every_s
    while len(done) < kills:
        time.sleep(max(0.2, due - time.monotonic()))
        left = left or next(order)
        kill = _kill_first(processes, left)
        if kill is None:
            if time.monotonic() - due > NO_PROCESS_S:
                raise TimeoutError(f"none of {', '.join(left)} has a process after {NO_PROCESS_S:g} s")
            continue
        due = time.monotonic() + every_s
        left.remove(kill.name)
        done.append(kill)
        on_kill(kill)
    return done


def _kill_first(processes: BoxProcesses, names: Sequence[str]) -> Kill | None:
    for name in names:
        with contextlib.suppress(LookupError, psutil.Error, ProcessLookupError):
            pid = processes.pid(name)
            os.kill(pid, signal.SIGKILL)
            return Kill(name, pid, time.time_ns() // 1_000)
    return None


def too_many_starts(kills: Sequence[Kill], starts: Mapping[str, int]) -> dict[str, tuple[int, int]]:
    """Return what started more often than these kills allow: number of starts, and number allowed."""
    allowed = Counter(name for kill in kills for name in STARTS_AGAIN[kill.name])
    return {name: (times, allowed[name]) for name, times in starts.items() if times > allowed[name]}


class Repeat(NamedTuple):
    """Delivery of a message that was delivered before. `flight_us`: from the earlier delivery to the kill."""

    kill: Kill | None
    flight_us: int


def repeats_of(received: Sequence[ReceivedDelivery], kills: Sequence[Kill], slack_us: int) -> list[Repeat]:
    """Return all repeated deliveries, each with the kill that caused it; None if no kill explains it.

    A message is delivered twice because its sender was killed after the earlier delivery and before it could record
    it: the first such kill between both deliveries. slack_us: by how much a receiver's line may be later than the kill.
    """
    sending = [kill for kill in kills if kill.name in ENDS_SENDS]
    found: list[Repeat] = []
    latest: dict[int, int] = {}
    for one in received:
        before_us = latest.get(one.position)
        latest[one.position] = one.received_us
        if before_us is not None:
            between = (kill for kill in sending if before_us - slack_us <= kill.at_us <= one.received_us)
            kill = next(between, None)
            found.append(Repeat(kill, kill.at_us - before_us if kill is not None else 0))
    return found
