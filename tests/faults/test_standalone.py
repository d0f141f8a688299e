"""A cell on Spark standalone with two workers: executors follow lanes, a worker is killed, and nothing is lost."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dataplane.ledger.bins import Bin
from tests.rig.data_plane import DataPlane, until
from tests.rig.spark_cluster import SparkCluster

pytestmark = [pytest.mark.long, pytest.mark.timeout(1_200)]
KINDS = 5
LIMIT_S = 240


@pytest.fixture
def own_plane(tmp_path: Path) -> Iterator[DataPlane]:
    """One of the test's own: its cell runs elsewhere."""
    plane = DataPlane(tmp_path / "plane")
    yield plane
    plane.close()


@pytest.fixture
def cluster(own_plane: DataPlane, tmp_path: Path) -> Iterator[SparkCluster]:
    cluster = SparkCluster(tmp_path / "spark", own_plane.process_env, workers=2)
    yield cluster
    cluster.close()


def lanes_run(plane: DataPlane, count: int, since_us: int) -> bool:
    plane.heartbeats.refresh()
    beats = plane.heartbeats.latest.values()
    running = [b for b in beats if b.state == "running" and b.kind != "driver" and b.at_us > since_us and b.cell]
    return len(running) == count and all(b.partitions for b in running)


def now_us() -> int:
    return time.time_ns() // 1_000


def test_lanes_and_executors_come_and_go_under_load_and_a_killed_worker_loses_nothing(
    own_plane: DataPlane, cluster: SparkCluster
):
    plane = own_plane
    plane.wait_ready()
    plane.master = cluster.master
    plane.start_cell()
    key = plane.add_pipe("elsewhere", {"crm": {"url": plane.receiver.url("/elsewhere")}})
    got = plane.receiver.got["/elsewhere"]
    with plane.sender(key) as sender:
        until(lambda: len(got) > 100, "messages come through", LIMIT_S)
        plane.cluster.publish_cell(process=3, transmit=2)
        until(lambda: lanes_run(plane, KINDS + 3, now_us() - 3_000_000), "three lanes more", LIMIT_S)
        assert cluster.cores_used() == KINDS + 3, "one executor of one core for each lane"

        plane.cluster.publish_cell()
        until(lambda: cluster.cores_used() == KINDS, "executors are given back", LIMIT_S)

        cluster.kill_worker(0)
        until(lambda: len(cluster.workers()) == 1, "the master has seen that a worker is gone", LIMIT_S)
        until(lambda: lanes_run(plane, KINDS, now_us() - 3_000_000), "all lanes run on the other worker", LIMIT_S)
        came = len(got)
        until(lambda: len(got) > came + 100, "messages come through again", LIMIT_S)
    whole = plane.settled("elsewhere", sender.positions, LIMIT_S)
    assert whole.at("crm", Bin.DELIVERED) == sender.positions == whole.acked
    assert (whole.lost(), len(whole.unacked)) == (0, 0)
    assert not plane.offsets.fell, "committed offsets went backwards"
