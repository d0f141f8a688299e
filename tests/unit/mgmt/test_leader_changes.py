"""Questions of pages to the brokers while a partition changes its leader: repeated, within the given time."""

import time
from datetime import UTC, datetime

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from mgmt.messages.queries import readers
from mgmt.messages.queries.readers import LEADER_WAIT_S, answer_within


class Brokers:
    """Brokers that answer after `failures` errors; `left_s` has the time left at each question."""

    def __init__(self, code: int, failures: int) -> None:
        self._error, self._failures = KafkaError(code), failures
        self.left_s: list[float] = []

    def ask(self, left_s: float) -> str:
        self.left_s.append(left_s)
        if len(self.left_s) <= self._failures:
            raise KafkaException(self._error)
        return "an answer"


@pytest.mark.parametrize("code", [KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE])
def test_question_is_repeated_until_a_new_leader_answers(code: int):
    brokers = Brokers(code, failures=2)
    assert answer_within(3.0, brokers.ask) == "an answer"
    assert len(brokers.left_s) == 3
    assert brokers.left_s[0] == pytest.approx(3.0, abs=0.1)
    assert brokers.left_s[2] <= brokers.left_s[0] - 2 * LEADER_WAIT_S


def test_question_fails_with_the_brokers_error_when_its_time_is_over():
    brokers, began_s = Brokers(KafkaError.NOT_LEADER_FOR_PARTITION, failures=1_000), time.monotonic()
    with pytest.raises(KafkaException) as raised:
        answer_within(0.5, brokers.ask)
    assert raised.value.args[0].code() == KafkaError.NOT_LEADER_FOR_PARTITION
    assert time.monotonic() - began_s < 0.6
    assert len(brokers.left_s) > 1


def test_other_errors_are_not_repeated():
    brokers = Brokers(KafkaError.TOPIC_AUTHORIZATION_FAILED, failures=1)
    with pytest.raises(KafkaException):
        answer_within(3.0, brokers.ask)
    assert len(brokers.left_s) == 1


def test_error_of_one_partition_is_no_offset(monkeypatch: pytest.MonkeyPatch):
    class Client:
        """Client of brokers that answer for one partition only; no real broker can be made to."""

        def offsets_for_times(self, asked: list[TopicPartition], timeout: float) -> list[object]:
            assert timeout > 0
            return [asked[0], type("Place", (), {"error": KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)})]

    reader = object.__new__(readers.RecordReader)
    monkeypatch.setattr(reader, "client", Client(), raising=False)
    with pytest.raises(KafkaException):
        reader.offsets_at("topic", [0, 1], datetime.now(UTC), 1.0)
