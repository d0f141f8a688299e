"""SIGKILL or an exception at every step of a lane, with the steps read from its code: nothing is lost.

Lanes run in plain processes on a real broker, in many cells at once; test_kills shows that Spark restarts them
when their process dies.
"""

import itertools
import random
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import Final

import msgspec
import pytest

from dataplane.names import LaneKind
from loadgen.scripted import Receiver
from tests.support.broker import Broker
from tests.support.cluster import broker_for_cells
from tests.support.crash_cells import FAILED, KILLED, CrashCell, LaneServer
from tests.support.crash_elsewhere import ELSEWHERE
from tests.support.crash_traffic import ProcessTraffic, RetrierTraffic, Traffic, TransmitTraffic
from tests.support.failures import FAILURES
from tests.support.ledger_checks import AuditReader
from tests.support.patience import until
from tests.support.sizes import CRASH_STEPS
from tests.support.steps import Step, steps_of

KINDS: Final[tuple[LaneKind, ...]] = ("process", "transmit", "transmit-retry", "retrier")
CELLS: Final = 10
PATIENCE_S: Final = 240.0  # enough on a busy machine
READING: Final = threading.Lock()  # all kinds share one ledger reader
# Every lane passes these with any input: before an outcome is recorded, before it is reported, before the commit.
SURE: Final = ("Lane._collect self._work.on_delivery", "Checkpointer._send self._outbox.send",
               "Checkpointer._commit self._consumer.commit")  # fmt: skip
# Kafka's errors that end no lane: after a commit that Kafka refuses, the next one covers it.
HANDLED: Final = {(SURE[-1], "kafka"), (SURE[-1], "fatal")}
KILL: Final = ""
BUG: Final = "bug"
MOSTLY: Final = 0.8  # share of the promised steps that is reached again; the rest depends on timing


class Campaign:
    """Cells of one kind of lane, reused for one step after another."""

    def __init__(self, kafka: str, traffic: Traffic, var: Path, server: LaneServer, books: AuditReader) -> None:
        self._kafka = kafka
        self._traffic = traffic
        self._server = server
        self._books = books
        self._var = var
        self._cells: list[CrashCell] = []
        self._pipes = 0
        self.reached: list[Step] = []

    def cells(self, count: int) -> list[CrashCell]:
        """Return that many cells, created as needed."""
        while len(self._cells) < count:
            number, kind = len(self._cells), self._traffic.kind
            self._cells.append(CrashCell(self._kafka, f"{kind}-{number}", kind, self._var / str(number), self._server))
        return self._cells[:count]

    @cached_property
    def lines(self) -> set[tuple[str, int]]:
        """Return every line that the traffic reaches: after a kill, and in a lane stopped with work in flight."""
        (cell,), paths = self.cells(1), [self._var / "seen.json", self._var / "seen-too.json"]
        pipe, sent = self._begin(cell)
        cell.start(next(step for step in steps_of(self._traffic.kind) if step.function == "Checkpointer.audited"))
        until(lambda: cell.code() is not None, "the kill", PATIENCE_S)
        cell.start(seen=paths[0])
        self._to_the_end(cell, pipe, sent)
        time.sleep(1.2)  # one heartbeat
        cell.stop()
        self._check(cell, pipe, sent)

        pipe, sent = self._begin(cell)
        at = cell.committed()
        cell.start(seen=paths[1])
        until(lambda: cell.committed() > at, "the first commit", PATIENCE_S)
        cell.stop()
        cell.start()
        self._to_the_end(cell, pipe, sent)
        cell.stop()
        self._check(cell, pipe, sent)
        return {line for path in paths for line in msgspec.json.decode(path.read_bytes(), type=list[tuple[str, int]])}

    def fail_at(self, steps: Sequence[Step], failures: Sequence[str]) -> None:
        """Fail once at each step, in as many cells at once; restart each cell's lane and let it finish.

        `failures`: the exception raised at each step; KILL for a SIGKILL.
        """
        under_way = [(cell, step, *self._begin(cell)) for cell, step in zip(self.cells(len(steps)), steps, strict=True)]
        for (cell, step, *_), raises in zip(under_way, failures, strict=True):
            cell.start(step, raises=raises)
        for cell, step, pipe, sent in under_way:
            self._to_the_end(cell, pipe, sent)
            if cell.code() is None:
                cell.cluster.stop(cell.incarnation)
                until(lambda cell=cell: cell.code() is not None, f"{cell.name} drains or dies", PATIENCE_S)  # type: ignore[misc]
            assert cell.code() in (KILLED, *FAILED, 0)
            self._check_committed(cell, step, pipe)
        self.reached += [step for cell, step, *_ in under_way if cell.code() in (KILLED, *FAILED)]
        for cell, *_ in under_way:
            cell.start()
        for (cell, step, pipe, sent), raises in zip(under_way, failures, strict=True):
            self._to_the_end(cell, pipe, sent)
            assert cell.code() is None, f"{cell.name} goes on after {step}"
            cell.stop()
            assert raises == BUG or not cell.dead_by_bug(pipe), f"{raises or 'a kill'} at {step} is no message's fault"
            self._check(cell, pipe, sent)

    def _to_the_end(self, cell: CrashCell, pipe: str, sent: dict[str, set[str]]) -> None:
        """Wait until the lane has finished or died."""
        self._traffic.later(cell, pipe, sent)

        def is_over() -> bool:
            return cell.code() is not None or self._traffic.is_done(cell, pipe, sent)

        until(is_over, f"the end of {cell.name}", PATIENCE_S)

    def close(self) -> None:
        for cell in self._cells:
            cell.close()

    def _begin(self, cell: CrashCell) -> tuple[str, dict[str, set[str]]]:
        self._pipes += 1
        pipe = f"{self._traffic.kind}-{self._pipes}"
        return pipe, self._traffic.begin(cell, pipe)

    def _check_committed(self, cell: CrashCell, step: Step, pipe: str) -> None:
        """Check that the ledger covers everything below the committed offset."""
        facts = self._facts(pipe)
        below = [meta for meta in cell.read(self._traffic.input, cell.committed()) if meta.pipe == pipe]
        untold = [meta.position for meta in below if not self._traffic.is_covered(meta, facts)]
        assert not untold, f"{cell.name}, failed at {step}: {len(untold)} of {len(below)} committed and in no book"

    def _check(self, cell: CrashCell, pipe: str, sent: dict[str, set[str]]) -> None:
        self._traffic.check(cell, pipe, sent, self._facts)

    def _facts(self, pipe: str) -> dict[tuple[str, str], set[str]]:
        with READING:
            self._books.refresh()
            return self._books.facts(pipe)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with broker_for_cells(tmp_path_factory.mktemp("crash-broker")) as broker:
        yield broker


@pytest.fixture(scope="module")
def server() -> Iterator[LaneServer]:
    made = LaneServer()
    yield made
    made.close()


@pytest.fixture(scope="module")
def campaigns(
    broker: Broker, server: LaneServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[LaneKind, Campaign]]:
    receiver = Receiver()
    books = AuditReader(broker.address, {})
    traffic: list[Traffic] = [
        ProcessTraffic(),
        TransmitTraffic(receiver),
        TransmitTraffic(receiver, "transmit-retry"),
        RetrierTraffic(),
    ]
    made = {
        one.kind: Campaign(broker.address, one, tmp_path_factory.mktemp(one.kind), server, books) for one in traffic
    }
    yield made
    for campaign in made.values():
        campaign.close()
    books.close()
    receiver.close()


@pytest.mark.long
@pytest.mark.timeout(1_200)
def test_campaign_passes_every_step(campaigns: dict[LaneKind, Campaign]):
    with ThreadPoolExecutor(len(campaigns)) as pool:  # each campaign mostly waits
        passed = set().union(*pool.map(lambda campaign: campaign.lines, campaigns.values()))
    steps = {step for kind in KINDS for step in steps_of(kind) if not step.function.endswith("__init__")}
    missing = [step for step in sorted(steps) if is_promised(step) and step.place not in passed]
    told = "\n".join(f"{step.file}:{step.line} {step.function}: {step.call}" for step in missing)
    assert not missing, f"add traffic to tests/support/crash_traffic.py that leads here, or say who shows it:\n{told}"


def run(campaign: Campaign, steps: Sequence[Step], failures: Sequence[str] = (KILL,)) -> None:
    """Fail at each step, with one failure after the other."""
    campaign.reached.clear()
    kinds = [failure for failure, _ in zip(itertools.cycle(failures), steps, strict=False)]
    for first in range(0, len(steps), CELLS):
        campaign.fail_at(steps[first : first + CELLS], kinds[first : first + CELLS])
    reached, wanted = sum(map(is_promised, campaign.reached)), sum(map(is_promised, steps))
    assert reached >= MOSTLY * wanted > 0, f"failed at {reached} of {wanted} steps"


def chosen(campaign: Campaign, kind: LaneKind) -> list[Step]:
    """Return CRASH_STEPS of the steps that the traffic reaches, others in each run; all of them if there are fewer."""
    steps = [step for step in steps_of(kind) if step.place in campaign.lines]
    return sorted(random.sample(steps, min(CRASH_STEPS, len(steps))))


def is_promised(step: Step) -> bool:
    """Return True if the traffic must reach the step each time, because no other test covers it."""
    return not {step.function, step.name} & ELSEWHERE.keys()


@pytest.mark.timeout(1_800)
def test_kill_or_exception_around_audit_and_commit_loses_nothing(campaigns: dict[LaneKind, Campaign]):
    def failed(kind: LaneKind) -> None:
        steps = [step for step in steps_of(kind) if step.name in SURE]
        failures = [KILL] * len(steps)
        raising = random.randrange(len(steps))
        failures[raising] = random.choice([name for name in FAILURES if (steps[raising].name, name) not in HANDLED])
        run(campaigns[kind], steps, failures)

    with ThreadPoolExecutor(len(KINDS)) as pool:  # each campaign mostly waits
        assert len(list(pool.map(failed, KINDS))) == len(KINDS)


@pytest.mark.long
@pytest.mark.timeout(7_200)
@pytest.mark.parametrize("kind", KINDS)
def test_kill_at_any_step_loses_nothing(campaigns: dict[LaneKind, Campaign], kind: LaneKind):
    run(campaigns[kind], chosen(campaigns[kind], kind))


@pytest.mark.long
@pytest.mark.timeout(7_200)
@pytest.mark.parametrize("kind", KINDS)
def test_exception_at_any_step_loses_nothing(campaigns: dict[LaneKind, Campaign], kind: LaneKind):
    run(campaigns[kind], chosen(campaigns[kind], kind), list(FAILURES))
