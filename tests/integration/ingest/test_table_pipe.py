"""A pipe that pushes the changes of a table to a webhook and a compacted topic, with real lanes on a real broker."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka import Message, TopicPartition
from confluent_kafka.admin import ConfigResource, ResourceType

from controlplane.settings import control_settings
from controlplane.topics import TopicCreator
from dataplane.ledger.bins import Bin
from dataplane.names import LOOKUP_TOPIC, output_topic
from dataplane.spec import TopicDestination
from dataplane.tables.lookups import encode_row, row_key
from mgmt.pipes.topics import output_plan
from tests.support.kafka import admin_consumer
from tests.support.lane_plane import LanePlane
from tests.support.patience import until

pytestmark = pytest.mark.timeout(900)
PIPE, TABLE = "pipe_push", "users"  # roles of a secured Kafka expect the ids of real pipes
KEYS: Final = ("u-1", "u-2", "u-3")
FEED: Final = {"type": "topic", "compacted": True, "partitions": 1, "remove_when": "body.operation == 'delete'"}


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LanePlane]:
    running = LanePlane(Path(tmp_path_factory.mktemp("push")))
    running.wait_ready()
    yield running
    running.close()


def write(plane: LanePlane, key: str, row: dict[str, Any] | None) -> None:
    """Write a row of the table, as the publisher of entered rows does; None removes it."""
    cluster = plane.cluster
    value = encode_row(cluster.version(), None if row is None else json.dumps(row).encode())
    cluster.producer.produce(LOOKUP_TOPIC, value, row_key(f"tab_{TABLE}", key))
    assert cluster.producer.flush(20) == 0


def pushed(plane: LanePlane) -> list[tuple[str, str, Any]]:
    """Return (key, operation, row) of each request, in the order of arrival."""
    bodies = [json.loads(one.body) for one in plane.receiver.got["/crm"]]
    return [(body["key"], body["operation"], body["row"]) for body in bodies]


def records(plane: LanePlane, topic: str) -> Sequence[Message]:
    consumer = admin_consumer({"bootstrap.servers": plane.cluster.kafka, "group.id": "test", "log_level": 3})
    place, found = TopicPartition(topic, 0, 0), list[Message]()
    _, high = consumer.get_watermark_offsets(place, timeout=10)
    consumer.assign([place])
    while high and (not found or found[-1].offset() + 1 < high):
        message = consumer.poll(10)
        assert message is not None
        found.append(message)
    consumer.close()
    return found


def test_every_change_reaches_webhook_and_topic_and_the_ledger_agrees(plane: LanePlane):
    topic = output_topic(PIPE, "feed")
    plane.cluster.publish_rows(TABLE, {"u-1": b'{"n": 0}', "gone": b'{"n": 0}'})
    write(plane, "gone", None)
    sources = {"shop": {"key": "id"}, "changes": {"type": "table", "table": TABLE, "from": "snapshot"}}
    plane.add_pipe(PIPE, {"crm": {"url": plane.receiver.url("/crm"), "ordered": True}, "feed": FEED}, sources=sources)
    expected: list[tuple[str, str, Any]] = [("u-1", "upsert", {"n": 0})]
    until(lambda: pushed(plane) == expected, "the snapshot, without the removed row", 90, seen=lambda: pushed(plane))
    for number in range(1, 5):  # the topic does not exist yet: its records are retried, and must keep their order
        for key in KEYS:
            row = None if number == 4 and key == "u-2" else {"n": number}
            write(plane, key, row)
            expected.append((key, "delete" if row is None else "upsert", row))
            until(lambda: len(pushed(plane)) == len(expected), "the change", 60, seen=lambda: pushed(plane))
    assert pushed(plane) == expected
    TopicCreator(plane.cluster.kafka).ensure(
        [output_plan(PIPE, "feed", TopicDestination(partitions=1, compacted=True), control_settings().topics)]
    )
    until(lambda: len(records(plane, topic)) >= len(expected), "every record after retries", 240)
    last = {one.key().decode(): one.value() for one in records(plane, topic)}
    assert {key: value and json.loads(value)["row"] for key, value in last.items()} == {
        "u-1": {"n": 4},
        "u-2": None,
        "u-3": {"n": 4},
    }
    assert is_compacted(plane, topic)

    whole = plane.settled(PIPE, set(), 120)
    assert len(whole.acked) == len(expected)
    assert whole.at("crm", Bin.DELIVERED) == whole.at("feed", Bin.DELIVERED) == whole.acked
    assert whole.lost() == 0
    headers = [one.headers for one in plane.receiver.got["/crm"]]
    assert len({one["webhook-id"] for one in headers}) == len(expected)


def test_event_without_a_key_is_a_dead_letter_of_the_compacted_topic(plane: LanePlane):
    before = len(plane.whole(PIPE).acked)
    key = plane.add_pipe(PIPE + "-keyless", {"feed": FEED}, sources={"shop": {"key": "id"}})
    assert plane.post(key, b'{"operation": "upsert"}')[0] == 202
    until(lambda: len(plane.whole(PIPE + "-keyless").at("feed", Bin.DEAD)) == 1, "the dead letter", 60)
    assert len(plane.whole(PIPE).acked) == before


def is_compacted(plane: LanePlane, topic: str) -> bool:
    resource = ConfigResource(ResourceType.TOPIC, topic)
    (found,) = (one.result(10) for one in plane.cluster.admin.describe_configs([resource]).values())
    return bool(found["cleanup.policy"].value == "compact")
