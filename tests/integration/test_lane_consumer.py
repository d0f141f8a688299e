"""The consumer of a lane on a real broker: it commits nothing by itself, and without an offset it stands still."""

import uuid
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from dataplane.runtime.kafka import lane_consumer
from tests.rig.patience import Patience

EVENTS = 20


@pytest.fixture
def topic(kafka_servers: str) -> Iterator[str]:
    """One partition with some records."""
    name, admin = f"lane-{uuid.uuid4().hex[:8]}", AdminClient({"bootstrap.servers": kafka_servers})
    admin.create_topics([NewTopic(name, 1, 1)])[name].result(20)
    producer = Producer({"bootstrap.servers": kafka_servers})
    for number in range(EVENTS):
        producer.produce(name, b"%d" % number)
    assert producer.flush(20) == 0
    yield name
    admin.delete_topics([name])[name].result(20)


def read(consumer: Consumer, count: int) -> list[Message]:
    """So many records or errors."""
    found: list[Message] = []
    patience = Patience(40)
    while len(found) < count:
        assert not patience.is_over, f"{len(found)} of {count} came"
        if (message := consumer.poll(1)) is not None:
            found.append(message)
    return found


def commit(kafka: str, group: str, place: TopicPartition) -> None:
    """As the provisioner does for a new topic."""
    with Consumer({"bootstrap.servers": kafka, "group.id": group}) as client:
        client.commit(offsets=[place], asynchronous=False)


def test_a_lane_that_ends_without_a_word_has_committed_nothing(kafka_servers: str, topic: str):
    commit(kafka_servers, topic, TopicPartition(topic, 0, 3))
    consumer = lane_consumer(kafka_servers, topic, "lane", lambda *_: None)
    consumer.subscribe([topic])
    assert [message.offset() for message in read(consumer, EVENTS - 3)] == list(range(3, EVENTS))
    consumer.close()
    with Consumer({"bootstrap.servers": kafka_servers, "group.id": topic}) as client:
        assert client.committed([TopicPartition(topic, 0)], timeout=10)[0].offset == 3


def test_a_lane_that_has_lost_its_offset_stands_still_and_never_jumps(kafka_servers: str, topic: str):
    consumer = lane_consumer(kafka_servers, topic, "lane", lambda *_: None)
    consumer.subscribe([topic])
    (first,) = read(consumer, 1)
    consumer.close()
    error = first.error()
    assert error is not None, f"it began at {first.offset()} by itself"
    assert error.code() == KafkaError._AUTO_OFFSET_RESET
