"""Pages say which right is missing when the brokers refuse a topic, and do not say that the brokers are away."""

from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any, Final

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from mgmt.messages.queries import readers
from mgmt.messages.queries.readers import (
    BrokersUnavailableError,
    ReadRightMissingError,
    RecordReader,
    RecordUnavailableError,
    raise_refusal,
    reading,
    unreadable,
)

TOPIC: Final = "penstock.pages"
REFUSED: Final = KafkaError.TOPIC_AUTHORIZATION_FAILED


class Brokers:
    """Consumer whose brokers know the topics with these errors; without topics, they do not answer."""

    def __init__(self, topics: Mapping[str, int | None]) -> None:
        self._topics = topics
        self.is_closed = False
        self.assigned: list[TopicPartition] = []

    def list_topics(self, topic: str, timeout: float) -> Any:
        assert timeout > 0
        if topic not in self._topics:
            raise KafkaException(KafkaError(KafkaError._TRANSPORT))
        code = self._topics[topic]
        found = SimpleNamespace(error=None if code is None else KafkaError(code))
        return SimpleNamespace(topics={topic: found})

    def assignment(self) -> list[TopicPartition]:
        return self.assigned

    def get_watermark_offsets(self, _place: TopicPartition, timeout: float) -> tuple[int, int]:
        assert timeout > 0
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT))

    def close(self) -> None:
        self.is_closed = True


@pytest.fixture
def brokers(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    def make(topics: Mapping[str, int | None]) -> Brokers:
        client = Brokers(topics)
        monkeypatch.setattr(readers, "make_consumer", lambda _settings: client)
        return client

    readers.close_readers()
    yield make
    readers.close_readers()


@pytest.mark.parametrize(
    ("topics", "error"),
    [
        pytest.param({TOPIC: REFUSED}, ReadRightMissingError, id="refused"),
        pytest.param({TOPIC: None}, BrokersUnavailableError, id="allowed"),
        pytest.param({TOPIC: KafkaError.LEADER_NOT_AVAILABLE}, BrokersUnavailableError, id="without a leader"),
        pytest.param({}, BrokersUnavailableError, id="no answer"),
    ],
)
def test_partition_that_stays_silent_is_refused_or_its_brokers_are_away(
    brokers: Any, topics: Mapping[str, int | None], error: type[RecordUnavailableError]
):
    client = brokers(topics)
    client.assigned = [TopicPartition(TOPIC, 0)]
    with pytest.raises(error), reading("earliest"):
        raise BrokersUnavailableError
    assert client.is_closed, "another consumer notices the right sooner"


def test_question_that_times_out_for_a_refused_topic_names_the_right(brokers: Any):
    brokers({TOPIC: REFUSED})

    def read_limits() -> None:
        with reading("earliest") as reader:
            reader.limits(TOPIC, 0, 0.1)

    with pytest.raises(ReadRightMissingError, match=r"no right to read the topic.*kafka_access roles --apply"):
        read_limits()


def test_brokers_that_are_away_are_not_asked(brokers: Any):
    client = brokers({TOPIC: REFUSED})
    reader = RecordReader("localhost:1", "earliest")
    client.assigned, reader.is_away = [TopicPartition(TOPIC, 0)], True
    assert isinstance(reader.failure(), BrokersUnavailableError)


@pytest.mark.parametrize("code", [REFUSED, KafkaError.GROUP_AUTHORIZATION_FAILED])
def test_error_of_a_missing_right_is_named(code: int):
    assert isinstance(unreadable(KafkaError(code)), ReadRightMissingError)
    assert isinstance(unreadable(KafkaError(KafkaError._TIMED_OUT)), BrokersUnavailableError)


def test_refused_topic_ends_a_read_at_once_and_a_refused_group_does_not():
    def message(code: int) -> Any:
        return SimpleNamespace(error=lambda: KafkaError(code))

    raise_refusal([message(KafkaError._PARTITION_EOF), message(KafkaError.GROUP_AUTHORIZATION_FAILED)])
    with pytest.raises(KafkaException):
        raise_refusal([message(KafkaError._PARTITION_EOF), message(REFUSED)])
