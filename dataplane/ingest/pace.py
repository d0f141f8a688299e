"""Produces at the pace of the brokers: while a partition has some records on their way, what else it gets waits here.

librdkafka begins no further request for a partition as long as five of its messages are on their way (an idempotent
producer; RD_KAFKA_IDEMP_MAX_INFLIGHT, compared with a count of messages). It takes what lingers meanwhile for due, and
its thread spins until the brokers answer, which takes the longer the less of the machine they get. So nothing is handed
to it that it would not send; what waits goes out in one request, as it did (docs/decisions/0445).
"""

from collections import defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple

from confluent_kafka import KafkaException, Producer

from dataplane.ledger.meta import Headers
from dataplane.runtime.replaceable import ReplaceableProducer

if TYPE_CHECKING:
    from dataplane.ingest.acks import Batch

ON_THEIR_WAY: Final = 5  # of a partition; with fewer librdkafka sends on
HELD_BYTES: Final = 128 * 1024 * 1024  # of a topic; as much as librdkafka's own queue holds
RECORD_BYTES: Final = 1_000  # what one costs beside its value, about


class Held(NamedTuple):
    """A record that waits for those before it."""

    value: bytes
    key: bytes | None
    headers: Headers
    batch: "Batch"


class Pace:
    """Records of one topic. The batch they belong to calls `reported` for each; `turn` after reports have come."""

    __slots__ = (
        "_failed",
        "_held",
        "_held_bytes",
        "_highs",
        "_on_their_way",
        "_passing",
        "_produce",
        "_replaceable",
        "_topic",
    )

    def __init__(self, producer: Producer | ReplaceableProducer, topic: str) -> None:
        self._produce = producer.produce
        self._replaceable = producer if isinstance(producer, ReplaceableProducer) else None
        self._topic = topic
        self._on_their_way: dict[int, int] = defaultdict(int)  # by partition
        self._passing: dict[int, Batch] = {}  # whose records go in one request with its first one
        self._held: dict[int, list[Held]] = {}
        self._held_bytes = 0
        self._highs: dict[int, int] = {}  # by partition, the highest offset that this producer was told
        self._failed: set[int] = set()  # partitions that could not store something since the last turn

    def send(self, value: bytes, key: bytes | None, partition: int, headers: Headers, batch: "Batch") -> None:
        """Produce it, or hold it. Raises BufferError, KafkaException. A hot path."""
        if partition not in self._held and self._passes(partition, batch):
            self._produce(self._topic, value, key, partition, batch.report, headers=headers)
            self._on_their_way[partition] += 1
            return
        if self._held_bytes >= HELD_BYTES:
            raise BufferError
        self._held.setdefault(partition, []).append(Held(value, key, headers, batch))
        self._held_bytes += RECORD_BYTES + len(value)

    def reported(self, partition: int, *, failed: bool) -> None:
        """One record less on its way."""
        self._on_their_way[partition] -= 1
        if failed:
            self._failed.add(partition)

    @property
    def is_late(self) -> bool:
        """Return whether the report that comes now is of an instance of the producer that failed."""
        return self._replaceable is not None and self._replaceable.is_draining

    def rises(self, partition: int, offset: int) -> bool:
        """Note the offset of a record that is stored; False if one as high was reported before. A hot path.

        Then the broker has lost what it had acknowledged, and gives its offsets to other records.
        """
        if offset <= self._highs.get(partition, -1):
            return False
        self._highs[partition] = offset
        return True

    def restart(self) -> None:
        """Begin anew with another producer: the next turn refuses everything that waits here."""
        self._failed |= self._held.keys()
        self._highs.clear()

    def turn(self) -> None:
        """Produce what need not wait any longer; where one could not be stored, those behind it need not try."""
        for partition in [one for one in self._held if self._on_their_way[one] < ON_THEIR_WAY or one in self._failed]:
            held = self._held.pop(partition)
            for record in held:
                self._held_bytes -= RECORD_BYTES + len(record.value)
                if partition in self._failed or not self._sent(partition, record):
                    self._failed.add(partition)
                    record.batch.refused(partition)
        self._failed.clear()

    def _passes(self, partition: int, batch: "Batch") -> bool:
        if self._on_their_way[partition] < ON_THEIR_WAY:
            self._passing[partition] = batch
            return True
        return self._passing[partition] is batch

    def _sent(self, partition: int, record: Held) -> bool:
        try:
            self._produce(self._topic, record.value, record.key, partition, record.batch.report, headers=record.headers)
        except (BufferError, KafkaException):
            return False
        self._on_their_way[partition] += 1
        return True
