"""Produce at the pace of the brokers: while a partition has some records in flight, its further records wait here.

librdkafka begins no further request for a partition while five of its messages are in flight (an idempotent producer;
RD_KAFKA_IDEMP_MAX_INFLIGHT, compared with a count of messages). It treats lingering messages as due meanwhile, and its
thread spins until the brokers answer, which takes longer the less CPU they get. So nothing is handed to it that it
would not send; the waiting records are sent in one request, as before (docs/kafka-clients.md).
"""

from collections import defaultdict
from typing import Final, Protocol

from confluent_kafka import KafkaError, KafkaException, Message, Producer
from msgspec import Struct

from dataplane.ledger.meta import Headers
from dataplane.runtime.producers.replaceable import ReplaceableProducer

MAX_IN_FLIGHT: Final = 5  # per partition; librdkafka keeps sending while there are fewer
HELD_BYTES: Final = 128 * 1024 * 1024  # per topic; as much as librdkafka's own queue holds
RECORD_BYTES: Final = 1_000  # approximate overhead of a record besides its value


class RecordReports(Protocol):
    """Receiver of what became of the records of one request."""

    def report(self, error: KafkaError | None, message: Message) -> None:
        """Handle the delivery report of one record."""

    def refused(self, partition: int) -> None:
        """Handle that one record will not be produced."""


class QueuedRecord(Struct, gc=False):
    """Record that waits for earlier records of its partition."""

    value: bytes
    key: bytes | None
    headers: Headers
    batch: RecordReports


class TopicThrottle:
    """Producer of one topic that limits the records in flight per partition.

    The batch of a record calls `reported` for each delivery report; `poll` is called after reports have arrived.
    """

    __slots__ = (
        "_failed",
        "_held",
        "_held_bytes",
        "_highs",
        "_in_flight",
        "_passing",
        "_produce",
        "_replaceable",
        "_topic",
    )

    def __init__(self, producer: Producer | ReplaceableProducer, topic: str) -> None:
        self._produce = producer.produce
        self._replaceable = producer if isinstance(producer, ReplaceableProducer) else None
        self._topic = topic
        self._in_flight: dict[int, int] = defaultdict(int)  # by partition
        # The batch that may exceed the limit, so that it is sent in one request.
        self._passing: dict[int, RecordReports] = {}
        self._held: dict[int, list[QueuedRecord]] = {}
        self._held_bytes = 0
        self._highs: dict[int, int] = {}  # by partition, the highest offset reported to this producer
        self._failed: set[int] = set()  # partitions that failed to store a record since the last poll

    def send(self, value: bytes, key: bytes | None, partition: int, headers: Headers, batch: RecordReports) -> None:
        """Produce the record, or queue it. Raises BufferError, KafkaException. A hot path."""
        if partition not in self._held:
            in_flight = self._in_flight[partition]
            if in_flight < MAX_IN_FLIGHT:
                self._passing[partition] = batch
            if in_flight < MAX_IN_FLIGHT or self._passing[partition] is batch:
                self._produce(self._topic, value, key, partition, batch.report, headers=headers)
                self._in_flight[partition] += 1
                return
        if self._held_bytes >= HELD_BYTES:
            raise BufferError
        self._held.setdefault(partition, []).append(QueuedRecord(value, key, headers, batch))
        self._held_bytes += RECORD_BYTES + len(value)

    def reported(self, partition: int, *, failed: bool) -> None:
        """Count one record less in flight."""
        self._in_flight[partition] -= 1
        if failed:
            self._failed.add(partition)

    @property
    def is_late(self) -> bool:
        """True if the current report is from a producer instance that has failed."""
        return self._replaceable is not None and self._replaceable.is_draining

    def rises(self, partition: int, offset: int) -> bool:
        """Note the offset of a stored record; return False if one as high was reported before. A hot path.

        In that case the broker has lost records that it had acknowledged, and gives their offsets to other records.
        Also returns False for a late report: the new producer instance may be given its offset.
        """
        if offset <= self._highs.get(partition, -1) or self.is_late:
            return False
        self._highs[partition] = offset
        return True

    def restart(self) -> None:
        """Start over with another producer: the next `poll` refuses every record that is queued."""
        self._failed |= self._held.keys()
        self._highs.clear()

    def poll(self) -> None:
        """Produce queued records of partitions with few in flight.

        After a failure the rest of the partition's queue is refused.
        """
        for partition in [one for one in self._held if self._in_flight[one] < MAX_IN_FLIGHT or one in self._failed]:
            held = self._held.pop(partition)
            for record in held:
                self._held_bytes -= RECORD_BYTES + len(record.value)
                if partition in self._failed or not self._sent(partition, record):
                    self._failed.add(partition)
                    record.batch.refused(partition)
        self._failed.clear()

    def _sent(self, partition: int, record: QueuedRecord) -> bool:
        try:
            self._produce(self._topic, record.value, record.key, partition, record.batch.report, headers=record.headers)
        except (BufferError, KafkaException):
            return False
        self._in_flight[partition] += 1
        return True
