"""One key on all partitions of a real broker, by `spread_key`: each partition gets its part, and nothing is lost."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition

from dataplane.ledger.bins import Bin
from dataplane.ledger.units import parse_position, place_of
from tests.support.kafka import admin_consumer
from tests.support.lane_plane import LanePlane
from tests.support.patience import until

REQUESTS = 60


@pytest.fixture
def plane(tmp_path: Path) -> Iterator[LanePlane]:
    plane = LanePlane(tmp_path)
    try:
        plane.wait_ready()
        yield plane
    finally:
        plane.close()


def post(plane: LanePlane, key: str) -> list[str]:
    """Send events of one key in several requests, and return their positions."""
    found = []
    for number in range(REQUESTS):
        body = b"\n".join(b'{"customer":"acme","number":%d}' % (number * 5 + one) for one in range(5))
        status, _, text = plane.post(key, body, content_type="application/x-ndjson")
        assert status == 202, text
        found += [answer["position"] for answer in json.loads(text)["items"]]
        time.sleep(0.011)  # ingest changes the partition every ten milliseconds
    return found


def egress_partitions(plane: LanePlane) -> set[int]:
    """Return the partitions of the egress topic that have records."""
    topic, numbers = plane.cluster.topics["egress"].name, range(plane.cluster.partitions)
    consumer = admin_consumer({"bootstrap.servers": plane.broker.address, "group.id": "rig-egress", "log_level": 3})
    ends = [consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=10)[1] for number in numbers]
    consumer.close()
    return {number for number, end in enumerate(ends) if end}


@pytest.mark.timeout(600)
def test_events_of_one_key_are_processed_on_all_partitions_and_delivered_once(plane: LanePlane):
    destination = {"crm": {"url": plane.receiver.url("/spread")}}
    key = plane.add_pipe("spread", destination, sources={"shop": {"key": "customer", "spread_key": True}})
    sent = post(plane, key)
    assert {place_of(parse_position(one)).partition for one in sent} == set(range(plane.cluster.partitions))
    until(lambda: set(sent) <= plane.whole("spread").at("crm", Bin.DELIVERED), "all is delivered", 120)
    assert plane.settled("spread", set(sent)).lost() == 0
    assert sorted(one.position for one in plane.receiver.got["/spread"]) == sorted(sent)
    assert egress_partitions(plane) == set(range(plane.cluster.partitions))
