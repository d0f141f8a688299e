"""The demo on Spark standalone, two workers: executors follow lanes, a worker is killed, nothing is lost."""

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime

import pytest

from dataplane.tables.records import TopicRecord
from localbox.testing import Box
from tests.support.box_lanes import ONE_OF_EACH, beating, pid_of, scale_to
from tests.support.box_shell import query_rows
from tests.support.demo_traffic import DemoTraffic
from tests.support.patience import until
from tests.support.spark_cluster import SparkCluster, box_on_cluster
from tests.support.watch import Offsets

pytestmark = [pytest.mark.long, pytest.mark.timeout(1_200)]
KINDS = len(ONE_OF_EACH)
LIMIT_S = 240
TOPICS = "SELECT purpose, name, generation, partitions, topic_id FROM mgmt_topic WHERE cell_id = 'c1'"


@pytest.fixture
def box_and_cluster() -> Iterator[tuple[Box, SparkCluster]]:
    with box_on_cluster() as made:
        yield made


@pytest.fixture
def box(box_and_cluster: tuple[Box, SparkCluster]) -> Box:
    return box_and_cluster[0]


@pytest.fixture
def cluster(box_and_cluster: tuple[Box, SparkCluster]) -> SparkCluster:
    return box_and_cluster[1]


@pytest.fixture
def offsets(box: Box) -> Iterator[Offsets]:
    until(lambda: beating(box) == ONE_OF_EACH, "a lane of each kind runs", LIMIT_S, seen=lambda: beating(box))
    topics = {purpose: TopicRecord(*rest) for purpose, *rest in query_rows(box, TOPICS)}
    with closing(Offsets(box.env["PENSTOCK_KAFKA"], "c1", topics)) as offsets:
        yield offsets


def test_demo_scales_lanes_and_executors_under_load_and_a_killed_worker_loses_nothing(
    box: Box, cluster: SparkCluster, offsets: Offsets
):
    with DemoTraffic(box) as traffic:
        traffic.until_delivered(100, LIMIT_S)
        scale_to(box, LIMIT_S, process=3, transmit=2)
        assert cluster.cores_used() == KINDS + 3, "one executor of one core for each lane"
        assert all(worker["coresused"] for worker in cluster.workers()), "each worker runs some of them"
        traffic.until_delivered(100, LIMIT_S)

        scale_to(box, LIMIT_S, process=1, transmit=1)
        until(lambda: cluster.cores_used() == KINDS, "executors are given back", LIMIT_S)
        traffic.until_delivered(100, LIMIT_S)

        cluster.kill_worker_of(pid_of(box, "process-0"))
        until(lambda: len(cluster.workers()) == 1, "the master has seen that a worker is gone", LIMIT_S)
        until(lambda: cluster.cores_used() == KINDS, "an executor for each lane on the other worker", LIMIT_S)
        moved = datetime.now(UTC)
        until(lambda: beating(box, moved) == ONE_OF_EACH, "all lanes run", LIMIT_S, seen=lambda: beating(box, moved))
        traffic.until_delivered(100, LIMIT_S)
    traffic.assert_accounted()
    assert not offsets.fell, "committed offsets went backwards"
