"""Requests about the offsets of a group. The answers are made up: no broker moves a coordinator on request."""

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from dataplane.mirror.clusters import COORDINATOR_MOVES, ask_coordinator


class Answers:
    """A coordinator that answers with these, in order, and with the last one ever after."""

    def __init__(self, *answers: int | list[TopicPartition]) -> None:
        self._answers = list(answers)
        self.requests = 0

    def __call__(self) -> list[TopicPartition]:
        self.requests += 1
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, int):
            raise KafkaException(KafkaError(answer))
        return answer


@pytest.mark.parametrize("code", sorted(COORDINATOR_MOVES))
def test_request_is_repeated_while_the_coordinator_moves(code: int):
    offsets = [TopicPartition("t", 0, 60)]
    answers = Answers(code, code, offsets)
    assert ask_coordinator(answers, pause_s=0) == offsets
    assert answers.requests == 3


def test_request_ends_with_the_coordinators_error_after_the_limit():
    answers = Answers(KafkaError.NOT_COORDINATOR)
    with pytest.raises(KafkaException) as raised:
        ask_coordinator(answers, limit_s=0.05, pause_s=0.01)
    assert raised.value.args[0].code() == KafkaError.NOT_COORDINATOR
    assert answers.requests > 1


@pytest.mark.parametrize("code", [KafkaError._ALL_BROKERS_DOWN, KafkaError.GROUP_AUTHORIZATION_FAILED])
def test_other_errors_are_not_retried(code: int):
    answers = Answers(code, [])
    with pytest.raises(KafkaException):
        ask_coordinator(answers, pause_s=0)
    assert answers.requests == 1
