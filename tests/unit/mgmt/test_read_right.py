"""Pages say that a right is missing when the brokers refuse a topic, and not that they are away; the log says which."""

from collections.abc import Iterator, Mapping
from functools import partial
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


def test_customer_is_referred_to_the_operator_and_the_log_names_topic_and_command(
    brokers: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    """A topic's name, a user of Kafka and a command are not a customer's, who also cannot help by reading again."""
    monkeypatch.setattr(readers, "_log_due", {})
    brokers({TOPIC: REFUSED})

    def read_limits() -> None:
        with reading("earliest") as reader:
            reader.limits(TOPIC, 0, 0.1)

    for _ in range(2):
        with pytest.raises(ReadRightMissingError) as raised:
            read_limits()
        words = "Penstock may not read its event log; contact the operator of this installation"
        assert str(raised.value) == words
        assert raised.value.with_advice("Try again.") == f"{words}."
    [line] = [record for record in caplog.records if record.name == readers.__name__]
    assert line.levelname == "WARNING"
    for part in (TOPIC, "Topic authorization failed", "manage.py kafka_access roles --apply"):
        assert part in line.getMessage()


def test_refusal_is_logged_again_after_a_pause_and_another_one_at_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setattr(readers, "_log_due", {})
    lines = []
    for at, reason in ((0.0, "a"), (1.0, "a"), (1.0, "b"), (readers.LOG_AGAIN_S, "a")):
        monkeypatch.setattr(readers, "time", SimpleNamespace(monotonic=partial(float, at)))
        caplog.clear()
        unreadable(KafkaError(REFUSED, reason))
        lines.append(len(caplog.records))
    assert lines == [1, 0, 1, 1]


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
        return SimpleNamespace(error=lambda: KafkaError(code), topic=lambda: TOPIC)

    raise_refusal([message(KafkaError._PARTITION_EOF), message(KafkaError.GROUP_AUTHORIZATION_FAILED)])
    with pytest.raises(KafkaException, match=TOPIC):
        raise_refusal([message(KafkaError._PARTITION_EOF), message(REFUSED)])
