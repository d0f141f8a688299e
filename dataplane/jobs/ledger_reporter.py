"""Reports of a query to the ledger: audit records of each batch, stored before the batch counts as complete."""

import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Final

from confluent_kafka import Consumer, KafkaException, TopicPartition

from dataplane.kafka_clients import make_offset_client
from dataplane.ledger.audit import AUDIT_VERSION, AuditRecord, LagSet, OffsetMark
from dataplane.ledger.facts import FactBook
from dataplane.ledger.report_parts import encode_parts
from dataplane.ledger.sequence_breaks import SequenceBreak
from dataplane.ledger.usage import UsageReport
from dataplane.names import AUDIT_TOPIC
from dataplane.runtime.kafka import lane_producer
from dataplane.runtime.producers.replaceable import ReplaceableProducer
from dataplane.tables.records import TopicRecord

STORED_S: Final = 30.0


class ReportWriteError(Exception):
    """Records of a batch are not stored, or that is unknown: the query fails, and its next start repeats the batch."""


class QueryLedgerReporter:
    """Reporter of one query, used in the thread that runs its batches.

    It replaces a producer that had a fatal error; records that this producer had not stored make `await_stored` raise.

    queue_kib: limit of the records that are not stored yet; `produce` waits above it
    """

    def __init__(self, kafka: str, cell: str, writer: str, queue_kib: int = 256 * 1024) -> None:
        self._kafka, self._cell, self._writer = kafka, cell, writer
        self._producer = ReplaceableProducer(partial(lane_producer, kafka, f"{cell}-{writer}", queue_kib=queue_kib))
        self._reader: Consumer | None = None  # of offsets; the reporters of tasks need none
        self._refused = ""

    def produce(
        self, topic: str, value: bytes | None, stored: Callable[[Any], None] | None = None, **record: Any
    ) -> None:
        """Produce a record; nothing is certain before `await_stored`.

        stored: called with the delivered message when the broker has stored it
        """

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
        """The number of the producer that will send the next record (`MessageMeta.producer`)."""
        return self._producer.instance

    def await_stored(self) -> None:
        """Wait until all produced records are stored. Raises ReportWriteError if one is refused, or after STORED_S."""
        left = self._producer.flush(STORED_S)
        refused, self._refused = self._refused, ""
        if left or refused:
            raise ReportWriteError(refused or f"{left} records not stored within {STORED_S:g} s")

    def report(
        self,
        facts: FactBook,
        inputs: list[OffsetMark],
        outputs: list[OffsetMark],
        kind: str,
        breaks: list[SequenceBreak] | None = None,
        *,
        lags: list[LagSet] | None = None,
        usage: UsageReport | None = None,
    ) -> None:
        """Store the audit records of a batch, one after the other. Raises ReportWriteError."""
        at_us = time.time_ns() // 1_000
        of_writer = (AUDIT_VERSION, self._cell, self._writer, kind, at_us)
        audit = AuditRecord(*of_writer, inputs, outputs, facts.take(), lags or [], usage, breaks=breaks or [])
        for record in encode_parts(audit):
            self.produce(AUDIT_TOPIC, record, key=self._cell)
            self.await_stored()

    def highs(self, topic: TopicRecord) -> list[OffsetMark]:
        """Return the highest offset of each partition; it covers all that this query has written.

        Raises ReportWriteError or KafkaException if the broker does not answer.
        """
        if self._reader is None:
            self._reader = make_offset_client(self._kafka, f"penstock.{self._cell}.{self._writer}")
        partitions = [TopicPartition(topic.name, number) for number in range(topic.partitions)]
        return [OffsetMark(topic.name, part.partition, end_of(self._reader, part) - 1) for part in partitions]

    def close(self) -> None:
        """Close the Kafka clients, and drop the records that are not stored: the next run writes them again."""
        with suppress(KafkaException):
            self._producer.flush(1)
        self._producer.close()
        if self._reader is not None:
            self._reader.close()


def end_of(reader: Any, partition: TopicPartition) -> int:
    """Return the high watermark of a partition.

    Raises ReportWriteError if the broker does not answer in time, KafkaException if it reports an error.
    """
    bounds = reader.get_watermark_offsets(partition, timeout=STORED_S)
    if bounds is None:
        raise ReportWriteError(
            f"no response within {STORED_S:g} s for the end offset of {partition.topic}/{partition.partition}"
        )
    return int(bounds[1])
