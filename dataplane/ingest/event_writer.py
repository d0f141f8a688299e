"""Checks, stamps and produces the events of a request."""

import time
from collections.abc import Iterable
from typing import Final

from confluent_kafka import KafkaException
from msgspec import Struct

from dataplane.ingest.acks import RequestRecords
from dataplane.ingest.event_types import admit, admit_or_note
from dataplane.ingest.events import Item, ReceivedEvent, reject_large
from dataplane.ingest.problems import EventRejectedError, unavailable
from dataplane.ingest.record_size import reject_large_envelope, reject_large_pair
from dataplane.ingest.rejection_log import RejectionLog
from dataplane.ingest.rejections import RejectedEvent
from dataplane.ingest.route import SourceRoute, Stamper
from dataplane.ingest.schemas import reject_mismatch
from dataplane.ingest.stamp import key_bytes, partition_of
from dataplane.ingest.time_slice import TimeSlice
from dataplane.ledger.meta import META_HEADER, MessageMeta, encode_meta
from dataplane.runtime.producers.replaceable import ReplaceableProducer
from dataplane.runtime.settings import DataPlaneSettings
from dataplane.runtime.telemetry.usage import UsageBook
from dataplane.tables.control import ControlReader

FEW_HEADERS: Final = 8  # this many headers of the largest size allowed do not fill the envelope
REQUEST_EFFORT: Final = (
    10  # in units of one event of a batch: a request of one event takes 35 us, an event in a batch of 100 takes 3 us
)


class IngestRequest(Struct):
    """Events of one request in flight to Kafka: their route, time of arrival and stamps.

    began_us:   the same moment as `now_us`, by the monotonic clock
    partition:  partition of the events without a key
    size_bytes: bytes of the bodies
    misfits:    records of a Kafka source that do not fit its event types, by their index in `metas`
    """

    route: SourceRoute
    now_us: int
    began_us: int
    partition: int
    metas: list[MessageMeta]
    size_bytes: int = 0
    misfits: dict[int, RejectedEvent] = {}


class EventWriter:
    """Writes the events of all requests of a replica. `unsettled`: events of the requests in progress."""

    def __init__(
        self,
        settings: DataPlaneSettings,
        producer: ReplaceableProducer,
        reader: ControlReader,
        rejections: RejectionLog,
        usage: UsageBook,
    ) -> None:
        self._max_event_bytes = settings.max_event_bytes
        self._producer = producer
        self._reader = reader
        self._rejections = rejections
        self._usage = usage
        self._stamper = Stamper(settings.grace_s * 1_000_000)
        self.unsettled = 0

    async def write(
        self, request: IngestRequest, items: Iterable[Item], batch: RequestRecords
    ) -> tuple[int, dict[int, EventRejectedError]]:
        """Produce every item that can be; return the number of items, and the refusals by their index."""
        refused: dict[int, EventRejectedError] = {}
        time_slice, count = TimeSlice(), 0
        is_checked = request.route.check is not None or request.route.gate is not None
        for item in items:
            try:
                misfit = self._check(request, item) if is_checked and isinstance(item, ReceivedEvent) else None
                self._produce(request, item, batch)
                if misfit is not None:
                    request.misfits[len(request.metas) - 1] = misfit
            except EventRejectedError as refusal:
                refused[count] = refusal
                self._note_refused(request, refusal, item)
            count += 1
            if time_slice.is_over:
                await time_slice.yield_to_loop()
        self._usage.add(request.route.pipe.pipe, len(request.metas), request.size_bytes, REQUEST_EFFORT + count)
        return count, refused

    def _note_refused(self, request: IngestRequest, refusal: EventRejectedError, item: Item) -> None:
        if isinstance(item, EventRejectedError):
            self._rejections.note(request.route, refusal, request.now_us, None)
        elif item.origin is None:  # else a feed, which offers it again
            self._rejections.note(request.route, refusal, request.now_us, item.body, item.value)

    def _check(self, request: IngestRequest, event: ReceivedEvent) -> RejectedEvent | None:
        """Check an event with the event types and the schema of its source. Raises EventRejectedError.

        Returns the description of a record of a Kafka source that does not fit.
        """
        gate, check = request.route.gate, request.route.check
        misfit = None
        if gate is not None:
            reject_large(event.body, self._max_event_bytes)
            if event.origin is None:
                admit(gate, event, request.now_us)
            else:
                most, is_loading = self._max_event_bytes, not self._reader.at_end
                misfit = admit_or_note(gate, event, request.now_us, max_event_bytes=most, is_loading=is_loading)
        if check is not None:
            reject_mismatch(check, event)
        if misfit is None:
            return None
        return self._rejections.describe(request.route, misfit, request.now_us, event.body, event.value)

    def _produce(self, request: IngestRequest, event: Item, batch: RequestRecords) -> None:
        if isinstance(event, EventRejectedError):
            raise event
        reject_large(event.body, self._max_event_bytes)
        metas = request.metas
        topic = request.route.topic
        meta, key = self._stamper.stamp(request.route, event, request.now_us)
        meta.producer = self._producer.instance
        meta.hops, meta.schema = event.hops, event.schema
        meta.idempotency_key, meta.request_headers = event.idempotency_key, event.request_headers
        if event.original is not None and request.route.fields[meta.revision].keeps_original:
            meta.original = event.original
            reject_large_pair(event.body, event.original)
        if event.origin is not None:
            meta.id, key = event.origin.id, key or key_bytes(meta.pipe, event.origin.key)
        if key is None or meta.revision in request.route.spread:
            partition = request.partition
        else:
            partition = partition_of(key, topic.partitions)
        headers = [(META_HEADER, encode_meta(meta)), *event.headers]
        if (
            len(headers) > FEW_HEADERS
            or event.origin is not None
            or event.request_headers
            or event.original is not None
        ):
            reject_large_envelope(key, headers, meta.original_bytes)
        if event.misfit:  # after the check, because it must not stop a feed; HOP_BYTES leave room for it
            meta.misfit, meta.event_type = event.misfit, event.type_header
            headers[0] = (META_HEADER, encode_meta(meta))
        if partition in batch.refusing:
            raise unavailable()
        try:
            batch.pace.send(event.body, key, partition, headers, batch)
        except (BufferError, KafkaException) as exc:
            batch.refusing.add(partition)  # later records there may have the same key and must not overtake it
            raise unavailable() from exc
        batch.numbers[partition].append(len(metas))
        metas.append(meta)
        self.unsettled += 1
        request.size_bytes += len(event.body)


def monotonic_us() -> int:
    """Return the time of the monotonic clock, in microseconds."""
    return time.monotonic_ns() // 1_000
