"""The outbox: every record produced is settled by its own delivery report, and remembered until then."""

from functools import partial
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from dataplane.ledger.audit import Mark

_OUTCOME_UNKNOWN = {KafkaError._MSG_TIMED_OUT, KafkaError._TIMED_OUT, KafkaError._TRANSPORT, KafkaError._PURGE_QUEUE}


class TooLargeError(Exception):
    """The record is larger than a topic takes; producing it again will not help."""


class ProducerDeadError(Exception):
    """The producer instance is of no more use (a fatal idempotence error); make a new one and read again."""


class Outbox:
    """Produces records and collects the tokens of those that were acknowledged.

    A record whose outcome is unknown is produced again: the ledger's sets and the unchanged message id absorb it.
    """

    def __init__(self, producer: Producer) -> None:
        self._producer = producer
        self._acked: list[Any] = []
        self._failed: list[tuple[KafkaError, str, dict[str, Any], Any]] = []
        self._highs: dict[tuple[str, int], int] = {}
        self.in_flight = 0

    def send(self, topic: str, token: Any, **record: Any) -> None:
        """Produce `record` (value, key, headers); `token` comes out of `collect` when it is stored.

        A full queue is waited for, not grown. Raises TooLargeError, ProducerDeadError.
        """
        report = partial(self._report, token, topic, record)
        while True:
            try:
                self._producer.produce(topic, on_delivery=report, **record)
                self.in_flight += 1
                return
            except BufferError:
                self._producer.poll(0.01)
            except KafkaException as exc:
                if exc.args[0].code() == KafkaError.MSG_SIZE_TOO_LARGE:
                    raise TooLargeError(f"{len(record['value'])} bytes") from exc
                raise ProducerDeadError(str(exc)) from exc

    def collect(self, wait_s: float = 0.0) -> list[Any]:
        """Tokens acknowledged since the last call, in the order of their reports; waits up to `wait_s` for one."""
        self._producer.poll(wait_s)
        if self._failed:
            self._again()
        acked, self._acked = self._acked, []
        return acked

    def marks(self) -> list[Mark]:
        """The highest offset written so far in each topic partition."""
        return [Mark(topic, partition, offset) for (topic, partition), offset in self._highs.items()]

    def _report(
        self, token: Any, topic: str, record: dict[str, Any], error: KafkaError | None, message: Message
    ) -> None:
        self.in_flight -= 1
        if error is not None:
            self._failed.append((error, topic, record, token))
            return
        place = (topic, message.partition())
        offset = message.offset()
        if offset > self._highs.get(place, -1):
            self._highs[place] = offset
        self._acked.append(token)

    def _again(self) -> None:
        failed, self._failed = self._failed, []
        for error, topic, record, token in failed:
            if error.fatal() or error.code() not in _OUTCOME_UNKNOWN:
                raise ProducerDeadError(f"{topic}: {error.str()}")
            self.send(topic, token, **record)
