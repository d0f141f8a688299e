"""Pages read records with cached consumers: few, never with another read's records, new after an outage."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Final

import pytest
from confluent_kafka.admin import NewTopic
from pytest_django import Settings

from mgmt.messages.queries.readers import MOST_IDLE, BrokersUnavailableError, RecordUnavailableError
from mgmt.messages.queries.records import messages_since, newest_messages, newest_of_key
from tests.support.broker import Broker
from tests.support.kafka import admin_producer, broker_admin
from tests.support.librdkafka import clients_made

pytestmark = pytest.mark.kafka_role("web")
RECORDS: Final = 300
TOPIC: Final = "penstock.pages"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker for this module only, as tests kill it; two partitions with keyed records."""
    broker = Broker(tmp_path_factory.mktemp("broker"))
    broker.start()
    admin = broker_admin(broker.address, log_level=0)
    admin.create_topics([NewTopic(TOPIC, 2, 1)])[TOPIC].result(20)
    writer = admin_producer({"bootstrap.servers": broker.address, "log_level": 0})
    for number in range(RECORDS):
        writer.produce(TOPIC, b"%d" % number, b"%d" % (number % 7), partition=number % 2)
    assert writer.flush(20) == 0
    yield broker
    broker.kill()


@pytest.fixture(autouse=True)
def _reads_there(broker: Broker, settings: Settings) -> None:
    settings.PENSTOCK_KAFKA = broker.address


def newest(partition: int, most: int) -> list[int]:
    return [int(message.value()) for message in newest_messages(TOPIC, [partition], most)]


def expected(partition: int, most: int) -> list[int]:
    return [number for number in range(RECORDS) if number % 2 == partition][-most:]


def test_reads_are_correct_whatever_the_consumer_has_read_before():
    for partition, most in [(0, 3), (1, 10), (0, 120), (1, 1), (0, 2)]:
        assert newest(partition, most) == expected(partition, most)
        first = next(islice(newest_messages(TOPIC, [partition], 50), 1))  # the rest is fetched and dropped
        assert int(first.value()) == expected(partition, 50)[0]


def test_hundred_reads_create_no_more_clients_than_one_of_each_kind():
    def read() -> None:
        assert newest(0, 5) == expected(0, 5)
        since = datetime.now(UTC) - timedelta(hours=1)
        assert len(list(messages_since(TOPIC, [0, 1], since))) == RECORDS
        found = newest_of_key(TOPIC, 1, b"3")
        assert found is not None

    read()
    made = clients_made()
    for _ in range(33):
        read()
    assert clients_made() == made + 1, "only the client that does the counting"


def test_concurrent_reads_have_a_consumer_each_and_few_are_kept():
    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(lambda most: newest(most % 2, most), range(1, 37)))
    assert found == [expected(most % 2, most) for most in range(1, 37)]
    made = clients_made()
    for most in range(1, 10):
        assert newest(0, most) == expected(0, most)
    assert clients_made() == made + 1
    assert MOST_IDLE < 6


def test_reads_fail_fast_while_the_broker_is_away_and_are_correct_after_its_return(broker: Broker):
    assert newest(0, 5) == expected(0, 5)
    broker.kill()
    with pytest.raises(BrokersUnavailableError):
        newest(0, 5)
    began = time.monotonic()
    for _ in range(3):
        with pytest.raises(RecordUnavailableError):
            newest_of_key(TOPIC, 0, b"0")
    assert time.monotonic() - began < 3 * 3.0, "each read would have waited for its timeout"
    broker.start()
    assert newest(0, 5) == expected(0, 5)
    assert newest_of_key(TOPIC, 0, b"0") is not None


@pytest.mark.long
def test_read_after_a_broker_restart_is_correct(broker: Broker):
    assert newest(1, 5) == expected(1, 5)
    broker.kill()
    broker.start()
    assert newest(1, 5) == expected(1, 5)
