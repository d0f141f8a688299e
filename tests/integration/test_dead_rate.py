"""A pipe whose messages all die in a step, on a real broker: it is held before its steps; nothing is lost."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition
from pyroaring import BitMap64

from dataplane.causes import Cause
from dataplane.ledger.bins import Bin
from dataplane.spec import parse_pipe_spec
from dataplane.tables.records import PipeRecord, PlanRecord, RedriveRecord
from dataplane.tables.redrives import encode_offsets
from dataplane.tables.signals import DestinationSignal, decode_signal
from tests.support.cluster import TENANT
from tests.support.kafka import admin_consumer
from tests.support.lane_plane import LanePlane
from tests.support.patience import until

PIPE = "storm"
CAST = {"op": "cast", "path": "n", "to": "int"}


@pytest.fixture
def plane(tmp_path: Path) -> Iterator[LanePlane]:
    plane = LanePlane(tmp_path)
    try:
        plane.wait_ready()
        yield plane
    finally:
        plane.close()


def post(plane: LanePlane, key: str, count: int) -> set[str]:
    """Send events that die in the step, and return their positions."""
    body = b"\n".join(b'{"n":"many","number":%d}' % number for number in range(count))
    status, _, text = plane.post(key, body, content_type="application/x-ndjson")
    assert status == 202, text
    return {answer["position"] for answer in json.loads(text)["items"]}


def signals(plane: LanePlane) -> list[DestinationSignal]:
    """Return the signals of lanes about the pipe."""
    topic = plane.cluster.topics["signals"].name
    consumer = admin_consumer({"bootstrap.servers": plane.broker.address, "group.id": "rig-signals", "log_level": 3})
    consumer.assign([TopicPartition(topic, 0, 0)])
    high = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=10)[1]
    found = consumer.consume(high, 5) if high else []
    consumer.close()
    return [decode_signal(one.value()) for one in found if one.error() is None and one.key().startswith(b"storm//")]


def move_of_all(plane: LanePlane) -> RedriveRecord:
    """Return the release of everything on the held topic; records of other pipes are skipped."""
    topic, numbers = plane.cluster.topics["held"].name, range(plane.cluster.partitions)
    consumer = admin_consumer({"bootstrap.servers": plane.broker.address, "group.id": "rig-held", "log_level": 3})
    ends = [consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=10)[1] for number in numbers]
    consumer.close()
    offsets = encode_offsets({(topic, number): BitMap64(range(end)) for number, end in enumerate(ends) if end})
    cell = plane.cluster.cell
    return RedriveRecord("m-storm", plane.cluster.version(), cell, PIPE, "", "release", offsets, 1_000.0, "running")


@pytest.mark.timeout(900)
def test_pipe_is_held_and_its_held_messages_are_delivered_by_the_fixed_revision(plane: LanePlane):
    url, cluster = plane.receiver.url("/storm"), plane.cluster
    key = plane.add_pipe(PIPE, {"crm": {"url": url}}, normalize=[CAST])
    first = post(plane, key, 300)
    until(lambda: signals(plane), "a lane says that it holds the pipe", 60)
    (said,) = {(one.destination, one.suspended) for one in signals(plane)}
    assert said == ("", Cause.DEAD_RATE)

    paused = PipeRecord(
        PIPE, cluster.version(), TENANT, "rig", cluster.cell, "paused", [(1, 100)], cause=Cause.DEAD_RATE
    )
    cluster.publish(paused)
    held = post(plane, key, 200)
    until(lambda: held <= plane.whole(PIPE).upstream(Bin.HELD), "all that came later is held", 60)
    before = plane.whole(PIPE)
    assert before.upstream(Bin.DEAD) | before.upstream(Bin.HELD) == first | held
    assert not before.upstream(Bin.DEAD) & held

    destinations = {"crm": {"type": "http", "url": url}}
    mended = parse_pipe_spec({"sources": {"shop": {}}, "destinations": destinations})
    cluster.publish(PlanRecord(PIPE, 2, mended))
    cluster.publish(PipeRecord(PIPE, cluster.version(), TENANT, "rig", cluster.cell, "active", [(2, 100)]))
    cluster.publish(move_of_all(plane))

    waiting = before.upstream(Bin.HELD)
    until(lambda: waiting <= plane.whole(PIPE).at("crm", Bin.DELIVERED), "all that was held is delivered", 120)
    after = plane.settled(PIPE, first | held)
    assert after.upstream(Bin.DEAD) == before.upstream(Bin.DEAD)
    assert not after.upstream(Bin.HELD)
    assert after.lost() == 0
    assert {one.position for one in plane.receiver.got["/storm"]} == waiting
