"""SIGKILL at seeded random moments under load: nothing ACKed is lost, and each repeat is the same message."""

import itertools
import logging
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable

import pytest

from dataplane.ledger.bins import Bin
from dataplane.names import LANE_KINDS, lane_group
from dataplane.runtime.kafka import SESSION_TIMEOUT_MS
from tests.support.data_plane import REPLICAS, DataPlane
from tests.support.patience import until
from tests.support.sender import Sender
from tests.support.sizes import KILLS

log = logging.getLogger(__name__)
RATE = 200.0
BACK_S = 30.0
SEND_LIMIT = 64  # the destination's concurrency: the limit of sends in flight
Victim = Callable[[], int]  # returns the pid of the next process to kill; each is killed in turn
Victims = Callable[[DataPlane], Victim]
Span = tuple[float, float]
LANES = ("process-0", "transmit-0", "retrier-0", "transmit-retry-0")


def check(plane: DataPlane, pipe: str, sender: Sender, kills: int) -> None:
    """Check that the sender, the receiver and the ledger agree."""
    whole = plane.settled(pipe, sender.positions)
    got = plane.receiver.got[f"/{pipe}"]
    counts = Counter(received.position for received in got)
    digests = {received.position: received.digest for received in got}

    assert whole.lost() == 0
    assert sender.positions - counts.keys() == set(), "ACKed and never received"
    assert whole.at("crm", Bin.DELIVERED) == counts.keys(), "the ledger and the receiver disagree"
    assert all(digests[acked.position] == acked.digest for acked in sender.acked), "a body was changed"
    assert len({(r.position, r.id, r.digest) for r in got}) == len(counts), "a repeat had another id or body"
    assert sum(counts.values()) - len(counts) <= kills * SEND_LIMIT, "more repeats than sends in flight"

    for bucket, positions in whole.acked_by_bucket.items():
        assert {acked.position for acked in sender.acked if acked.bucket == bucket} <= positions
    nobody_knows = whole.acked - sender.positions  # ACKed, but the response never reached the sender
    assert {digests[position] for position in nobody_knows | whole.unacked} <= set(sender.unknown)
    assert not plane.offsets.fell, "committed offsets went backwards"


def ending_with(plane: DataPlane, pid: int) -> frozenset[int]:
    """Return the pids that end with this process; with a driver, all lanes end."""
    plane.heartbeats.refresh()
    lanes = {beat.pid for beat in plane.heartbeats.latest.values() if beat.kind in LANE_KINDS}
    is_driver = pid not in lanes | plane.ingest_pids()
    return frozenset({pid} | lanes if is_driver else {pid})


def lanes_back(plane: DataPlane, since_us: int, killed: frozenset[int]) -> float:
    def back() -> bool:
        plane.heartbeats.refresh()
        return plane.heartbeats.lanes_are_back(plane.partitions, since_us=since_us, not_pids=killed)

    return until(back, "all lanes are back", 4 * BACK_S)


def slowdown() -> float:
    """Return by how much other processes slow this machine down, at least 1."""
    return max(1.0, os.getloadavg()[0] / (2 * (os.cpu_count() or 1)))


def kill_at_random(plane: DataPlane, chance: random.Random, victim: Victim, between_s: Span) -> float:
    time.sleep(chance.uniform(*between_s))
    pid = victim()
    killed, since_us = ending_with(plane, pid), time.time_ns() // 1_000
    os.kill(pid, signal.SIGKILL)
    return lanes_back(plane, since_us, killed)


def run(plane: DataPlane, pipe: str, victim: Victim, *, kills: int, seed: int, between_s: Span) -> None:
    key = plane.add_pipe(pipe, {"crm": {"url": plane.receiver.url(f"/{pipe}"), "concurrency": SEND_LIMIT}})
    chance = random.Random(seed)
    with plane.sender(key, RATE) as sender:
        took = [kill_at_random(plane, chance, victim, between_s) for _ in range(kills)]
        time.sleep(1)
    log.info("%s: lanes back after %s s", pipe, [round(seconds, 1) for seconds in took])
    assert max(took) <= BACK_S * slowdown(), f"lanes came back after {took} s"
    check(plane, pipe, sender, kills)


def drivers(plane: DataPlane) -> Victim:
    turns = itertools.cycle([plane.driver_pid, plane.python_driver_pid])

    def victim() -> int:
        pid_of = next(turns)
        return pid_of()

    return victim


def workers(plane: DataPlane) -> Victim:
    turns = itertools.cycle(LANES)
    return lambda: plane.lane_pid(next(turns))


def replicas(plane: DataPlane) -> Victim:
    turns = itertools.cycle(REPLICAS)
    return lambda: plane.replicas.pid(next(turns))


def test_lanes_of_a_killed_application_leave_their_groups_before_their_sessions_time_out(plane: DataPlane):
    groups = [lane_group(plane.cluster.cell, kind) for kind in LANE_KINDS]

    def members() -> set[str]:
        found = plane.cluster.admin.describe_consumer_groups(groups)
        return {member.member_id for one in found.values() for member in one.result().members}

    before = members()
    assert len(before) >= len(LANE_KINDS)
    os.kill(plane.driver_pid(), signal.SIGKILL)
    left_s = until(lambda: not members() & before, "no group has a member of the killed application", seen=members)
    assert left_s < SESSION_TIMEOUT_MS / 1_000 / 2


@pytest.mark.timeout(1_800)
@pytest.mark.parametrize(
    "victims",
    [pytest.param(drivers, id="driver"), pytest.param(workers, id="worker"), pytest.param(replicas, id="replica")],
)
def test_two_kills_under_load_lose_nothing(plane: DataPlane, request: pytest.FixtureRequest, victims: Victims):
    name = f"kill-{request.node.callspec.id}"
    run(plane, name, victims(plane), kills=2, seed=20_261_121, between_s=(1.5, 3.5))


@pytest.mark.long
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize(
    ("victims", "between_s"),
    [
        # The keeper trusts an application again after a minute; before that its restart delay grows beyond 30 s.
        pytest.param(drivers, (61.0, 66.0), id="driver"),
        pytest.param(workers, (2.0, 8.0), id="worker"),
        pytest.param(replicas, (2.0, 8.0), id="replica"),
    ],
)
def test_repeated_kills_under_load_lose_nothing(
    plane: DataPlane,
    request: pytest.FixtureRequest,
    victims: Victims,
    between_s: Span,
):
    run(plane, f"long-{request.node.callspec.id}", victims(plane), kills=KILLS, seed=7, between_s=between_s)
