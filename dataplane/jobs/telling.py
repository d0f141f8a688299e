"""What a query tells the ledger: one audit record a batch, stored before the batch counts as done."""

import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from confluent_kafka import Consumer, KafkaException, TopicPartition

from dataplane.ledger.audit import AUDIT_VERSION, Audit, Mark
from dataplane.ledger.facts import FactBook
from dataplane.ledger.report_parts import encode_parts
from dataplane.names import AUDIT_TOPIC
from dataplane.runtime.kafka import lane_producer
from dataplane.runtime.replaceable import ReplaceableProducer
from dataplane.tables.records import TopicRecord

STORED_S: Final = 30.0


class NotStoredError(Exception):
    """Records of a batch are not stored, or nobody knows: the query ends, and the batch is done again."""


class Teller:
    """Of one query, used from the thread that runs its batches.

    A producer that has had a fatal error is replaced; what it had not stored by then makes `await_stored` raise.
    """

    def __init__(self, kafka: str, cell: str, writer: str) -> None:
        self._cell, self._writer = cell, writer
        self._producer = ReplaceableProducer(partial(lane_producer, kafka, f"{cell}-{writer}"))
        self._reader = Consumer({"bootstrap.servers": kafka, "group.id": f"penstock.{cell}.{writer}", "log_level": 3})
        self._refused = ""

    def produce(
        self, topic: str, value: bytes | None, stored: Callable[[Any], None] | None = None, **record: Any
    ) -> None:
        """Produce a record; `stored` is called with its report. Nothing is certain before `await_stored`."""

        def report(error: Any, message: Any) -> None:
            if error is not None:
                self._refused = f"{topic}: {error.str()}"
            elif stored is not None:
                stored(message)

        while True:
            try:
                self._producer.produce(topic, value, on_delivery=report, **record)
            except BufferError:
                self._producer.poll(0.01)
            else:
                return

    @property
    def producer(self) -> int:
        """The number of the producer that takes the next record (Meta.producer)."""
        return self._producer.instance

    def await_stored(self) -> None:
        """Wait until everything produced is stored. Raises NotStoredError."""
        left = self._producer.flush(STORED_S)
        refused, self._refused = self._refused, ""
        if left or refused:
            raise NotStoredError(refused or f"{left} records not stored within {STORED_S:g} s")

    def tell(self, facts: FactBook, inputs: list[Mark], outputs: list[Mark], kind: str) -> None:
        """Store what a batch has to report: audit records, one after the other. Raises NotStoredError."""
        at_us = time.time_ns() // 1_000
        audit = Audit(AUDIT_VERSION, self._cell, self._writer, kind, at_us, inputs, outputs, facts.take(), [])
        for record in encode_parts(audit):
            self.produce(AUDIT_TOPIC, record, key=self._cell)
            self.await_stored()

    def highs(self, topic: TopicRecord) -> list[Mark]:
        """The highest offset of each partition: at least as high as what was written last."""
        places = [TopicPartition(topic.name, number) for number in range(topic.partitions)]
        return [Mark(topic.name, place.partition, end_of(self._reader, place) - 1) for place in places]

    def close(self) -> None:
        """Let go of the broker."""
        try:
            self._producer.flush(1)
        except KafkaException:  # it is being closed; what was not stored is told by the next run
            return
        finally:
            self._reader.close()


def end_of(reader: Any, place: TopicPartition) -> int:
    """The next offset of a partition. Raises NotStoredError if the broker does not answer, KafkaException."""
    bounds = reader.get_watermark_offsets(place, timeout=STORED_S)
    if bounds is None:
        raise NotStoredError(f"no answer within {STORED_S:g} s where {place.topic}/{place.partition} ends")
    return int(bounds[1])
