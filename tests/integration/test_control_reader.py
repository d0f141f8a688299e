"""Reader of the control topic on a real broker, at the start of a process."""

import time
import uuid
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from confluent_kafka.admin import NewTopic

from dataplane.tables import control
from dataplane.tables.control import ControlReader
from dataplane.tables.records import QuotaRecord, encode_record, record_key
from tests.support.kafka import admin_producer, broker_admin

pytestmark = pytest.mark.kafka_role("cells")
NOBODY = "127.0.0.1:1"


@pytest.fixture
def topic(kafka_servers: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A control topic for one test."""
    name, admin = f"penstock.control-{uuid.uuid4().hex[:8]}", broker_admin(kafka_servers)
    admin.create_topics([NewTopic(name, 1, 1)])[name].result(20)
    monkeypatch.setattr(control, "CONTROL_TOPIC", name)
    yield name
    admin.delete_topics([name])[name].result(20)


def publish(kafka: str, topic: str, tenant: str) -> None:
    producer = admin_producer({"bootstrap.servers": kafka})
    record = QuotaRecord(tenant, 1, events_per_s=5)
    producer.produce(topic, key=record_key(record), value=encode_record(record))
    assert producer.flush(20) == 0


def test_reader_that_starts_from_a_snapshot_reads_later_records(kafka_servers: str, topic: str, tmp_path: Path):
    publish(kafka_servers, topic, "early")
    with closing(ControlReader(kafka_servers, tmp_path / "snapshot")) as reader:
        assert reader.catch_up(20)
    publish(kafka_servers, topic, "late")
    with closing(ControlReader(kafka_servers, tmp_path / "snapshot")) as reader:
        assert reader.table.quota("early") is not None
        assert reader.table.quota("late") is None
        assert reader.catch_up(20)
        assert reader.table.quota("late") is not None


def test_reader_with_nothing_to_read_does_not_wait_for_more(kafka_servers: str, topic: str, tmp_path: Path):
    publish(kafka_servers, topic, "early")
    times = []
    for _ in range(4):  # the first one has no snapshot
        with closing(ControlReader(kafka_servers, tmp_path / "snapshot")) as reader:
            began = time.monotonic()
            assert reader.catch_up(20)
            times.append(time.monotonic() - began)
    assert min(times[1:]) < 0.8, "the broker holds an empty fetch for a second"


def test_recreated_topic_is_read_completely(kafka_servers: str, topic: str, tmp_path: Path):
    publish(kafka_servers, topic, "new")
    with closing(ControlReader(kafka_servers, tmp_path / "snapshot")) as reader:
        reader.table.offset = 7  # of the previous topic
        assert reader.catch_up(20)
        assert reader.table.quota("new") is not None


def test_unavailable_broker_ends_the_wait_in_time(tmp_path: Path):
    with closing(ControlReader(NOBODY, tmp_path / "snapshot")) as reader:
        assert not reader.catch_up(0.5)
