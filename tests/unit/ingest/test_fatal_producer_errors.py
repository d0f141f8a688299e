"""After a fatal producer error, in-flight events are answered with 503 and a new producer stores the next ones.

Uses librdkafka's mock broker, because a real one causes the error only by losing what it had acknowledged.
"""

import asyncio
from pathlib import Path

import pytest

from dataplane.ingest import topic_throttle
from dataplane.ingest.acks import AckTracker
from dataplane.ingest.replica import IngestReplica
from dataplane.runtime.settings import settings_from
from tests.support.librdkafka import MockCluster, fail_for_good
from tests.support.memory_replica import close_replica
from tests.unit.ingest.test_ack_after_delivery_report import ROUTE, events, taken


@pytest.fixture
def cluster() -> MockCluster:
    cluster = MockCluster()
    cluster.make_topic(ROUTE.topic.name)
    return cluster


def test_replica_replaces_its_producer_and_acks_only_stored_events(tmp_path: Path, cluster: MockCluster):
    async def run() -> None:
        settings = settings_from({"PENSTOCK_KAFKA": cluster.address, "PENSTOCK_VAR": str(tmp_path)})
        replica = IngestReplica(settings, "ingest-1")
        replica._loop = asyncio.get_running_loop()
        replica._acks = AckTracker(replica._producer, replica._recorder.on_done)
        replica._reader.at_end = True
        (stored,) = await replica.take(ROUTE, events("1"))
        assert (stored.status, replica.ready) == (202, "")
        cluster.kill()
        count = topic_throttle.MAX_IN_FLIGHT + 3  # some are in the client's queue, the throttle holds the others
        waiting = [await taken(replica, events(str(number))) for number in range(count)]
        failed = replica._producer._producer
        fail_for_good(failed)
        answers = [(await task)[0].status for task in waiting]
        assert answers == [503] * count
        assert "replaced" in replica.ready
        assert replica._producer._producer is not failed
        cluster.start()
        after = (await replica.take(ROUTE, events("2")))[0]
        assert after.status == 202
        readings = {reading.name: reading.value for reading in replica.readings() if not reading.labels}
        assert readings["penstock_ingest_producer_replacements_total"] == 1
        lines = (tmp_path / "data" / "acks" / "ingest-1.acks").read_bytes().splitlines()
        assert len(lines) == 2, "only stored events are in the ack journal"
        close_replica(replica)

    asyncio.run(run())
