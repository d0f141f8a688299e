"""Bulk execution on real Spark: switches under load, and kills, lose nothing and leave the ledger exact."""

import json
import logging
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from controlplane.compute.processes import signal_all
from dataplane.ledger.bins import Bin
from dataplane.spec import parse_pipe_spec
from dataplane.tables.records import PipeRecord, PlanRecord
from tests.faults.test_kills import RATE, SEND_LIMIT, Span, drivers, kill_at_random
from tests.support.cluster import TENANT
from tests.support.data_plane import DataPlane, running_plane
from tests.support.patience import until
from tests.support.replay_campaign import task_workers
from tests.support.sender import Sender
from tests.support.sizes import KILLS

pytestmark = pytest.mark.timeout(1_800)
log = logging.getLogger(__name__)
ENOUGH: Final = 50  # events of a revision that show that it is in use
STARTS_S: Final = 120.0  # of the first query of an application, with its Spark SQL session


@pytest.fixture(scope="module")
def bulk_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DataPlane]:
    with running_plane(tmp_path_factory.mktemp("bulk")) as plane:
        yield plane


def marking(revision: int, url: str, execution: str) -> PlanRecord:
    """Return a plan whose steps set the revision's number."""
    spec = {
        "sources": {"shop": {}},
        "destinations": {"crm": {"type": "http", "url": url}},
        "normalize": [{"op": "set", "path": "revision", "value": revision}],
        "execution": execution,
    }
    return PlanRecord("", revision, parse_pipe_spec(spec), 1)


def use(plane: DataPlane, pipe: str, revision: int) -> None:
    """Give all keys of the pipe to a revision, and wait until enough of its events arrive."""
    cluster, got = plane.cluster, plane.receiver.got[f"/{pipe}"]
    before = len(got)
    cluster.publish(PipeRecord(pipe, cluster.version(), TENANT, "rig", cluster.cell, "active", [(revision, 100)]))

    def is_used() -> bool:
        return [json.loads(one.body).get("revision") for one in got[before:]].count(revision) >= ENOUGH

    until(is_used, f"events of revision {revision} arrive", STARTS_S)


def add_pipe(plane: DataPlane, pipe: str, **spec: Any) -> str:
    url = plane.receiver.url(f"/{pipe}")
    key = plane.add_pipe(pipe, {"crm": {"url": url, "concurrency": SEND_LIMIT}}, **spec)
    for revision, execution in ((2, "bulk"), (3, "streaming")):
        plan = marking(revision, url, execution)
        plane.cluster.publish(PlanRecord(pipe, revision, plan.spec, plane.cluster.version()))
    return key


def settled_counts(plane: DataPlane, pipe: str, sender: Sender) -> Counter[str]:
    """Check that nothing is lost and that ledger and receiver agree; return how often each event arrived."""
    whole = plane.settled(pipe, sender.positions, 180)
    got = plane.receiver.got[f"/{pipe}"]
    counts = Counter(one.position for one in got)
    assert whole.lost() == 0
    assert sender.positions - counts.keys() == set(), "ACKed and never received"
    assert whole.at("crm", Bin.DELIVERED) == counts.keys(), "the ledger and the receiver disagree"
    assert len({(one.position, one.id, one.digest) for one in got}) == len(counts), "a repeat had another id or body"
    return counts


def test_pipe_that_switches_between_streaming_and_bulk_under_load_delivers_each_event_once(bulk_plane: DataPlane):
    pipe = "switched"
    key, before = add_pipe(bulk_plane, pipe), bulk_plane.records_on("bulk")
    with bulk_plane.sender(key, RATE) as sender:
        for revision in (2, 3, 2, 3):
            use(bulk_plane, pipe, revision)
    counts = settled_counts(bulk_plane, pipe, sender)
    assert counts == Counter(sender.positions), "each event arrives once"
    bodies = [json.loads(one.body) for one in bulk_plane.receiver.got[f"/{pipe}"]]
    passed_on = bulk_plane.records_on("bulk") - before
    assert passed_on == sum(body.get("revision") == 2 for body in bodies), "the query ran exactly the bulk revision"


def batches(plane: DataPlane, log: str) -> list[Path]:
    """Return the files of a log of the query's checkpoint, the newest last."""
    folder = plane.var / "data" / "checkpoints" / plane.cluster.cell / "bulk.g1" / log
    return sorted(folder.glob("[0-9]*"), key=lambda path: int(path.name))


def in_flight(plane: DataPlane) -> int:
    """Return how many events the batch has that the query has begun and not committed; 0 without one."""
    begun, committed = batches(plane, "offsets"), batches(plane, "commits")
    if not begun or (committed and committed[-1].name == begun[-1].name):
        return 0
    before = [path for path in begun if committed and path.name == committed[-1].name]
    return read_up_to(begun[-1]) - (read_up_to(before[0]) if before else 0)


def read_up_to(offsets: Path) -> int:
    (by_topic,) = (json.loads(line) for line in offsets.read_text().splitlines()[-1:])
    return sum(sum(partitions.values()) for partitions in by_topic.values())


def kill_workers(plane: DataPlane, chance: random.Random, between_s: Span) -> None:
    """Kill the Python workers that run no lane while a batch is running."""
    time.sleep(chance.uniform(*between_s))
    until(lambda: in_flight(plane) and task_workers(plane), "a batch is running", STARTS_S)
    signal_all(task_workers(plane), signal.SIGKILL)


def run_with_kills(plane: DataPlane, pipe: str, kills: int, between_s: Span) -> None:
    """Kill the Python workers of tasks, and the JVM and the Python driver, in turns."""
    key = add_pipe(plane, pipe)
    chance, application, may_repeat = random.Random(11), drivers(plane), 0
    with plane.sender(key, RATE) as sender:
        use(plane, pipe, 2)
        for number in range(kills):
            if number % 2:
                kill_at_random(plane, chance, application, between_s)
            else:
                kill_workers(plane, chance, between_s)
            may_repeat += in_flight(plane) + SEND_LIMIT
        back = len(plane.receiver.got[f"/{pipe}"])
        until(lambda: len(plane.receiver.got[f"/{pipe}"]) > back + ENOUGH, "the query runs again", STARTS_S)
        time.sleep(1)
    counts = settled_counts(plane, pipe, sender)
    repeated = counts.total() - len(counts)
    log.info("%s: %d of %d repeated after %d kills, %d may be", pipe, repeated, len(counts), kills, may_repeat)
    assert repeated <= may_repeat, "more repeats than messages in flight"


def test_killed_python_workers_and_jvm_of_a_bulk_pipe_lose_nothing(bulk_plane: DataPlane):
    run_with_kills(bulk_plane, "bulk-killed", 2, (2.0, 4.0))


@pytest.mark.long
@pytest.mark.timeout(3_600)
def test_many_kills_of_a_bulk_pipe_lose_nothing(bulk_plane: DataPlane):
    run_with_kills(bulk_plane, "bulk-killed-often", max(KILLS, 4), (61.0, 66.0))
