"""Producer of a lane that settles every record by its own delivery report.

A lane's producer has no delivery timeout (kafka.lane_producer): it waits for an unreachable broker. A report with an
error therefore means that the topic rejects the record, or that the producer instance is unusable. A single record is
kept until it is stored, and is retried on a topic that rejects it (`RejectedRecords`). Records of a group are not kept:
the lane ends and is restarted from its committed offsets, which produces the uncertain ones again; the ledger's sets
and the unchanged message id absorb the repeats.
"""

import contextlib
import time
from collections.abc import Callable
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from dataplane.ledger.audit import OffsetMark
from dataplane.ledger.meta import Headers
from dataplane.runtime.kafka import SEND_NOW_S
from dataplane.runtime.producers.rejected_records import PendingRecord, RejectedRecords

ANY_PARTITION: Final = -1  # the partitioner chooses, by key


class RecordTooLargeError(Exception):
    """The record is larger than the client accepts; producing it again will not help."""


class ProducerFencedError(Exception):
    """The producer instance is unusable (a fatal idempotence error); create a new one and read again."""


class ProduceGroup:
    """Records of one topic under one token, which `TrackedProducer.collect` returns once all of them are stored.

    All records share one callback: an object per delivery report would cost a hot loop a tenth of its time.
    """

    __slots__ = ("_highs", "_outbox", "_owed", "_produce", "_report", "_token", "_topic")

    def __init__(self, outbox: "TrackedProducer", producer: Producer, topic: str, token: Any) -> None:
        self._outbox = outbox
        self._produce = producer.produce
        self._topic = topic
        self._token = token
        self._highs = outbox.highs(topic)
        self._owed = 1  # one for the group itself, until `close`
        self._report = self._reported  # bound once: creating a bound method per record costs time

    def send(self, value: bytes | None, key: bytes | None, partition: int, headers: Headers) -> None:
        """Produce a record; block while the client's queue is full.

        Raises RecordTooLargeError if it exceeds the client's limit, ProducerFencedError after a fatal error.
        """
        while True:
            try:
                self._produce(self._topic, value, key, partition, self._report, headers=headers)
            except BufferError:
                self._outbox.wait()
            except KafkaException as exc:
                if exc.args[0].code() == KafkaError.MSG_SIZE_TOO_LARGE:
                    raise RecordTooLargeError(f"{len(value or b'')} bytes") from exc
                self._outbox.note_refusal(self._topic, exc.args[0])
                raise ProducerFencedError(str(exc)) from exc
            else:
                self._owed += 1
                return

    def close(self) -> None:
        """End the group: no more records follow under this token."""
        self._owed -= 1
        if self._owed:
            self._outbox.in_flight += 1
        else:
            self._end()
            self._outbox.stored(self._token)

    def _end(self) -> None:
        """Forget the bound method, which refers to the group: lanes run the cyclic collector every few minutes."""
        del self._report

    def _reported(self, error: KafkaError | None, message: Message) -> None:
        """Handle a delivery report. A hot path."""
        if error is not None:
            if self._owed == 1:
                self._end()
            self._outbox.refused(self._topic, self._token, error)
            return
        partition, offset = message.partition(), message.offset()
        # A record that an internal retry of the producer stored has no offset; the partition's next record has one.
        if offset is not None and offset > self._highs.get(partition, -1):
            self._highs[partition] = offset
        self._owed -= 1
        if not self._owed:
            self._end()
            self._outbox.in_flight -= 1
            self._outbox.stored(self._token)


class TrackedProducer:
    """Producer that returns a token for each record or group of records once it is stored.

    in_flight:     groups with records that are not stored yet; a single record counts as a group
    refused_topic: topic that refused a record of a group; "" if none did
    """

    def __init__(self, producer: Producer) -> None:
        self._producer = producer
        self._stored: list[Any] = []
        self._refusals = RejectedRecords()
        self._dead = ""
        self._highs: dict[str, dict[int, int]] = {}
        self.in_flight = 0
        self.refused_topic = ""

    def begin_group(self, topic: str, token: Any) -> ProduceGroup:
        """Return a group for many records under one token; close it after the last one."""
        return ProduceGroup(self, self._producer, topic, token)

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
        """Produce one record; `collect` returns `token` when it is stored. Raises like ProduceGroup.send."""
        record = PendingRecord(topic, token, value, key, partition, headers or [])
        if not self._refusals.takes(record):
            self._post(record)

    def show(self, topic: str, value: bytes, key: bytes, headers: Headers) -> None:
        """Produce a best-effort copy, which is dropped if the queue is full or the record is rejected."""
        with contextlib.suppress(BufferError, KafkaException):
            self._producer.produce(topic, value, key, headers=headers)

    def collect(self, wait_s: float = 0.0) -> list[Any]:
        """Return the tokens stored since the last call, in the order of their reports; wait up to `wait_s` for one.

        Raises ProducerFencedError if a record of a group was rejected, or after a fatal error.
        """
        self._poll(wait_s)
        if self._dead:
            raise ProducerFencedError(self._dead)
        for record in self._refusals.due(time.monotonic()):
            self._post(record)
        stored, self._stored = self._stored, []
        return stored

    def send_now(self) -> None:
        """Send buffered records without waiting for `linger.ms`; serve reports until all are stored, up to SEND_NOW_S.

        Raises ProducerFencedError.
        """
        self._serve(self._producer.flush, SEND_NOW_S)

    @property
    def is_full(self) -> bool:
        """True if so many rejected records wait that the lane should read no more messages."""
        return self._refusals.is_full

    @property
    def trouble(self) -> str:
        """Text that names the topics that reject records; "" if there is none."""
        return self._refusals.words

    def marks(self) -> list[OffsetMark]:
        """Return the highest offset written so far in each topic partition."""
        return [OffsetMark(topic, p, offset) for topic, highs in self._highs.items() for p, offset in highs.items()]

    # -- for groups ------------------------------------------------------------------------------------------------

    def highs(self, topic: str) -> dict[int, int]:
        """Return the highest offset written in each partition of a topic; the group updates it in place."""
        return self._highs.setdefault(topic, {})

    def stored(self, token: Any) -> None:
        """Note that all records of a token are stored."""
        if isinstance(token, PendingRecord):
            self._refusals.stored(token)
            token = token.token
        self._stored.append(token)

    def refused(self, topic: str, token: Any, error: KafkaError) -> None:
        """Handle a report with an error: retry a single record later, otherwise keep the first error for `collect`."""
        if isinstance(token, PendingRecord) and not error.fatal():
            self.in_flight -= 1
            self._refusals.requeue(token, error.str(), time.monotonic())
        else:
            self._dead = self._dead or f"{topic}: {error.str()}"
            self.note_refusal(topic, error)

    def note_refusal(self, topic: str, error: KafkaError) -> None:
        """Keep the topic that refused a record, also before it was sent (no right, no such topic)."""
        self.refused_topic = self.refused_topic or ("" if error.fatal() else topic)

    def wait(self) -> None:
        """Wait for delivery reports because the client's queue is full. Raises ProducerFencedError."""
        self._poll(0.01)

    def _poll(self, wait_s: float) -> None:
        self._serve(self._producer.poll, wait_s)

    @staticmethod
    def _serve(call: Callable[[float], int], wait_s: float) -> None:
        """Serve delivery reports. The client raises a fatal error here, once; no report contains it."""
        try:
            call(wait_s)
        except KafkaException as exc:
            raise ProducerFencedError(exc.args[0].str()) from exc

    def _post(self, record: PendingRecord) -> None:
        group = self.begin_group(record.topic, record)
        group.send(record.value, record.key, record.partition, record.headers)
        group.close()
