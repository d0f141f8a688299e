"""Size limits of a record: one module defines them, and clients, topics and brokers agree."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from confluent_kafka import KafkaError, KafkaException, Producer
from hypothesis import given
from hypothesis import strategies as st

from controlplane.topics import cluster_plans
from dataplane.record_limits import (
    BODY_BYTES,
    CLIENT_MAX_BYTES,
    ENVELOPE_BYTES,
    FRAMING_BYTES,
    HOP_BYTES,
    TOPIC_MAX_BYTES,
    wire_bytes,
)
from dataplane.runtime import kafka
from dataplane.runtime.settings import settings_from
from dataplane.spec import TopicDestination
from localbox.services.kafka import properties
from localbox.services.kafka_nodes import KafkaNode
from localbox.settings import ROOT
from mgmt.pipes.topics import RETENTION_MS, TopicShape, cell_plans, output_plan

SHAPE = TopicShape(partitions=4, replication=1, min_isr=1, retention_ms=dict(RETENTION_MS))
NOBODY = "127.0.0.1:1"


@pytest.fixture(scope="module")
def producer() -> Iterator[Producer]:
    """Client with the limit of the lanes, which it checks before it needs a broker."""
    made = Producer({"bootstrap.servers": NOBODY, "message.max.bytes": CLIENT_MAX_BYTES, "log_level": 0})
    yield made
    made.purge()
    made.poll(0)


def is_accepted(producer: Producer, value: bytes, key: bytes | None, headers: list[tuple[str, bytes]]) -> bool:
    try:
        producer.produce("t", value, key, headers=headers)
    except KafkaException as exc:
        if exc.args[0].code() != KafkaError.MSG_SIZE_TOO_LARGE:
            raise
        return False
    producer.purge()
    producer.poll(0)
    return True


def test_every_topic_accepts_the_limit_of_a_broker_and_more_than_a_client_sends():
    to = TopicDestination(partitions=1)
    plans = [*cell_plans("c1", 1, SHAPE).values(), *cluster_plans(SHAPE), output_plan("p", "feed", to, SHAPE)]
    assert {plan.config["max.message.bytes"] for plan in plans} == {str(TOPIC_MAX_BYTES)}
    node = KafkaNode(1, "kafka", Path("home"), 1, 2)
    broker = properties([node], node)
    assert broker["message.max.bytes"] == str(TOPIC_MAX_BYTES)
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]["kafka"]["environment"]
    assert compose["KAFKA_MESSAGE_MAX_BYTES"] == TOPIC_MAX_BYTES
    batch_header_bytes = 61
    assert CLIENT_MAX_BYTES + batch_header_bytes < TOPIC_MAX_BYTES


@pytest.mark.parametrize("make", [kafka.lane_producer, lambda address, name: kafka.ingest_producer(address, name, 500)])
def test_clients_of_the_data_plane_have_the_limit(make: Callable[[str, str], Producer], producer: Producer):
    largest = CLIENT_MAX_BYTES - FRAMING_BYTES
    made = make(NOBODY, "sizes")
    for one in (made, producer):
        assert is_accepted(one, b"x" * largest, None, [])
        assert not is_accepted(one, b"x" * (largest + 1), None, [])


@given(
    names=st.lists(st.text("aé", min_size=1, max_size=200), max_size=50),
    text=st.integers(0, 20_000),
    key=st.integers(0, 300),
    more=st.integers(-40, 40),
)
def test_wire_bytes_is_at_least_what_the_client_counts(
    producer: Producer, names: list[str], text: int, key: int, more: int
):
    headers = [(name, b"h" * text) for name in names]
    body = CLIENT_MAX_BYTES - wire_bytes(b"", b"k" * key, headers) + more
    fits = wire_bytes(b"x" * body, b"k" * key, headers) <= CLIENT_MAX_BYTES
    assert fits is (more <= 0)
    if fits:
        assert is_accepted(producer, b"x" * body, b"k" * key, headers)


def test_parts_of_a_message_add_up_to_the_limit_of_a_client():
    assert BODY_BYTES + ENVELOPE_BYTES + HOP_BYTES == CLIENT_MAX_BYTES


def test_event_limit_above_the_limit_of_topics_is_refused():
    assert settings_from({"PENSTOCK_MAX_EVENT_BYTES": str(BODY_BYTES)}).max_event_bytes == BODY_BYTES
    with pytest.raises(ValueError, match=r"PENSTOCK_MAX_EVENT_BYTES: needs 1 to \d+"):
        settings_from({"PENSTOCK_MAX_EVENT_BYTES": str(BODY_BYTES + 1)})
