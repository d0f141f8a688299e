"""The outbox: every record produced is settled by its own delivery report.

A lane's producer never gives up (kafka.lane_producer): a broker that is away is waited for. So a report with an error
means that the topic refuses the record, or that the instance is of no more use. A record sent by itself is kept until
it is stored, and goes to a topic that refuses it again and again (`Refusals`). Of a shipment nothing is kept: the lane
ends and is started anew from its committed offsets, which produces again what is in doubt; the ledger's sets and the
unchanged message id absorb it.
"""

import contextlib
import time
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from dataplane.ledger.audit import Mark
from dataplane.ledger.meta import Headers
from dataplane.runtime.refusals import Letter, Refusals

ANY_PARTITION: Final = -1  # the partitioner chooses, by key


class TooLargeError(Exception):
    """The record is larger than a topic takes; producing it again will not help."""


class ProducerDeadError(Exception):
    """The producer instance is of no more use (a fatal idempotence error); make a new one and read again."""


class Shipment:
    """Records of one topic under one token, which comes out of `Outbox.collect` once, when all of them are stored.

    One callback for all: a hot loop that makes an object for each record's report spends a tenth of its time on that.
    """

    __slots__ = ("_highs", "_outbox", "_owed", "_produce", "_report", "_token", "_topic")

    def __init__(self, outbox: "Outbox", producer: Producer, topic: str, token: Any) -> None:
        self._outbox = outbox
        self._produce = producer.produce
        self._topic = topic
        self._token = token
        self._highs = outbox.highs(topic)
        self._owed = 1  # until it is closed
        self._report = self._reported  # bound once

    def send(self, value: bytes | None, key: bytes | None, partition: int, headers: Headers) -> None:
        """Produce a record. A full queue is waited for, not grown. Raises TooLargeError, ProducerDeadError."""
        while True:
            try:
                self._produce(self._topic, value, key, partition, self._report, headers=headers)
            except BufferError:
                self._outbox.wait()
            except KafkaException as exc:
                if exc.args[0].code() == KafkaError.MSG_SIZE_TOO_LARGE:
                    raise TooLargeError(f"{len(value or b'')} bytes") from exc
                raise ProducerDeadError(str(exc)) from exc
            else:
                self._owed += 1
                return

    def close(self) -> None:
        """Nothing more comes under this token."""
        self._owed -= 1
        if self._owed:
            self._outbox.in_flight += 1
        else:
            self._outbox.stored(self._token)

    def _reported(self, error: KafkaError | None, message: Message) -> None:
        """A hot path."""
        if error is not None:
            self._outbox.refused(self._topic, self._token, error)
            return
        partition, offset = message.partition(), message.offset()
        # Stored by an earlier try of the producer's own, it has no offset here; the next record of its partition has.
        if offset is not None and offset > self._highs.get(partition, -1):
            self._highs[partition] = offset
        self._owed -= 1
        if not self._owed:
            self._outbox.in_flight -= 1
            self._outbox.stored(self._token)


class Outbox:
    """Produces records and collects the tokens of those that were acknowledged.

    in_flight: shipments of which not all records are stored; one record sent by itself is a shipment, too
    """

    def __init__(self, producer: Producer) -> None:
        self._producer = producer
        self._stored: list[Any] = []
        self._refusals = Refusals()
        self._dead = ""
        self._highs: dict[str, dict[int, int]] = {}
        self.in_flight = 0

    def shipment(self, topic: str, token: Any) -> Shipment:
        """Many records under one token; close it after the last."""
        return Shipment(self, self._producer, topic, token)

    def send(
        self,
        topic: str,
        token: Any,
        *,
        value: bytes | None,
        key: bytes | None = None,
        partition: int = ANY_PARTITION,
        headers: Headers | None = None,
    ) -> None:
        """Produce one record; `token` comes out of `collect` when it is stored. Raises as Shipment.send."""
        letter = Letter(topic, token, value, key, partition, headers or [])
        if not self._refusals.takes(letter):
            self._post(letter)

    def show(self, topic: str, value: bytes, key: bytes, headers: Headers) -> None:
        """Produce a copy that no promise is about: with a full queue, or when it is refused, there is none."""
        with contextlib.suppress(BufferError, KafkaException):
            self._producer.produce(topic, value, key, headers=headers)

    def collect(self, wait_s: float = 0.0) -> list[Any]:
        """Tokens stored since the last call, in the order of their reports; waits up to `wait_s` for one.

        Raises ProducerDeadError if a shipment's record was refused, or the instance has had a fatal error.
        """
        self._poll(wait_s)
        if self._dead:
            raise ProducerDeadError(self._dead)
        for letter in self._refusals.due(time.monotonic()):
            self._post(letter)
        stored, self._stored = self._stored, []
        return stored

    @property
    def is_full(self) -> bool:
        """Whether so many records have been refused that nothing more should be taken in."""
        return self._refusals.is_full

    @property
    def trouble(self) -> str:
        """Which topics refuse records, in words; "" if none does."""
        return self._refusals.words

    def marks(self) -> list[Mark]:
        """The highest offset written so far in each topic partition."""
        return [Mark(topic, p, offset) for topic, highs in self._highs.items() for p, offset in highs.items()]

    # -- for shipments ---------------------------------------------------------------------------------------------

    def highs(self, topic: str) -> dict[int, int]:
        """The highest offset written in each partition of a topic."""
        return self._highs.setdefault(topic, {})

    def stored(self, token: Any) -> None:
        """All records of a token are stored."""
        if isinstance(token, Letter):
            self._refusals.stored(token)
            token = token.token
        self._stored.append(token)

    def refused(self, topic: str, token: Any, error: KafkaError) -> None:
        """A report came with an error; of those that cannot be mended the first one is the telling one."""
        if isinstance(token, Letter) and not error.fatal():
            self.in_flight -= 1
            self._refusals.put_off(token, error.str(), time.monotonic())
        else:
            self._dead = self._dead or f"{topic}: {error.str()}"

    def wait(self) -> None:
        """Let some reports come, for the producer's queue is full. Raises ProducerDeadError."""
        self._poll(0.01)

    def _poll(self, wait_s: float) -> None:
        """The client raises a fatal error here, once; it is in no report."""
        try:
            self._producer.poll(wait_s)
        except KafkaException as exc:
            raise ProducerDeadError(exc.args[0].str()) from exc

    def _post(self, letter: Letter) -> None:
        shipment = self.shipment(letter.topic, letter)
        shipment.send(letter.value, letter.key, letter.partition, letter.headers)
        shipment.close()
