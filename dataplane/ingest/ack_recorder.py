"""Journals and counts the ACKs of requests whose delivery reports are known."""

import logging
from collections.abc import Collection

from msgspec import Struct

from dataplane.ingest.acks import RequestRecords
from dataplane.ingest.event_writer import IngestRequest, monotonic_us
from dataplane.ingest.journal import AckJournal, JournalledAck
from dataplane.ingest.ledger_reporter import LedgerReporter
from dataplane.ingest.version_traffic import TrafficBook
from dataplane.ledger.units import partition_base
from dataplane.runtime.producers.replaceable import ReplaceableProducer
from dataplane.tables.records import PipeRecord

log = logging.getLogger(__name__)


class StoredUnits(Struct):
    """Units of one pipe and bucket that were stored since the last poll, with their lags on arrival.

    began_us: arrival of each unit's request, by the monotonic clock
    """

    ack: JournalledAck
    lags_in_us: list[int]
    began_us: list[int]


class AckRecorder:
    """Takes each request before its response is sent. `trouble`: why the journal cannot be written; "" if it can."""

    def __init__(
        self, producer: ReplaceableProducer, journal: AckJournal, reporter: LedgerReporter, traffic: TrafficBook
    ) -> None:
        self._producer = producer
        self._journal = journal
        self._reporter = reporter
        self._traffic = traffic
        self.trouble = ""

    def on_done(self, batches: list[RequestRecords]) -> None:
        """Journal and count ACKs before any response is sent.

        An event whose ACK cannot be journalled gets 503, although it is stored: its sender repeats it.
        """
        reusing = [batch for batch in batches if batch.reused]
        for batch in reusing:
            self._note_reuse(batch)
        if reusing:
            self._producer.renew("Kafka assigned its offsets again")
        stored = self._stored(batches)
        if not stored:
            return
        acks = [units.ack for units in stored]
        try:
            self._journal.write(acks)
        except OSError as exc:
            self._note_journal(f"ACKs cannot be journalled: {exc.strerror}")
            for batch in batches:
                batch.places = [None] * len(batch.places)
            return
        self._note_journal("")
        done_us = monotonic_us()
        for units in stored:
            self._reporter.passed(units.ack, units.lags_in_us, [done_us - began_us for began_us in units.began_us])
        self._reporter.on_delivery(acks)
        for batch in batches:
            if batch.subject.route.gate is not None:
                self._count_versions(batch)

    def _count_versions(self, batch: RequestRecords) -> None:
        """Count the stored events of a request by the version that each was checked with."""
        request: IngestRequest = batch.subject
        pairs = zip(request.metas, batch.places, strict=True)
        versions = (meta.schema for meta, place in pairs if place is not None)
        self._traffic.accept(request.route.pipe.pipe, request.route.source, versions, request.now_us)

    def _stored(self, batches: list[RequestRecords]) -> Collection[StoredUnits]:
        """Return the events of these requests that are stored, by cell, pipe, bucket and producer. A hot path."""
        stored: dict[tuple[str, str, int, int], StoredUnits] = {}
        found: StoredUnits | None = None
        found_of: PipeRecord | None = None  # a pipe that moved to another cell has another record
        bucket, producer = -1, -1
        for batch in batches:
            request: IngestRequest = batch.subject
            pipe, generation, now_us = request.route.pipe, request.route.topic.generation, request.now_us
            if pipe is not found_of:
                found, found_of = None, pipe
            for meta, place in zip(request.metas, batch.places, strict=True):
                if place is None:
                    continue
                partition, offset = place
                if found is None or meta.bucket != bucket or meta.producer != producer:
                    bucket, producer = meta.bucket, meta.producer
                    key = (pipe.cell, pipe.pipe, bucket, producer)
                    found = stored.get(key) or stored.setdefault(
                        key, StoredUnits(JournalledAck(*key[:3], [], producer), [], [])
                    )
                found.ack.positions.append(partition_base(generation, partition) + offset)
                found.lags_in_us.append(now_us - meta.event_time_us)
                found.began_us.append(request.began_us)
        return stored.values()

    def _note_reuse(self, batch: RequestRecords) -> None:
        """Report offsets that one producer received twice.

        Kafka has lost the records that had them first. The records of `batch` are not ACKed: no two ACKed records of a
        producer share an offset.
        """
        request: IngestRequest = batch.subject
        log.error("Kafka lost acknowledged records: topic %s assigned offsets again", request.route.topic.name)
        pipe, generation = request.route.pipe, request.route.topic.generation
        for partition, offset in batch.reused:
            position = partition_base(generation, partition) + offset
            for bucket in {request.metas[number].bucket for number in batch.numbers[partition]}:
                self._reporter.reused(pipe.cell, pipe.pipe, bucket, [position])

    def _note_journal(self, trouble: str) -> None:
        """Remember whether the journal can be written: heartbeats say so, the log only on a change."""
        if trouble != self.trouble:
            log.error("%s", trouble) if trouble else log.warning("ACKs can be journalled again")
            self.trouble = trouble
