"""Redriver: returns held, dead or early-released messages while the lane does its other work.

It reads by assignment, in no group: it changes no committed offset, and a destination that is paused for a week blocks
no other. Progress is reported once the records are stored and the ledger has their facts; after a restart the next
lane continues from there.
"""

import logging
import time
from typing import Any, Final, NamedTuple

import msgspec
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from dataplane.kafka_clients import make_consumer
from dataplane.ledger.deadletter import dead_letter_reason, original_of
from dataplane.ledger.meta import Headers, MessageMeta, read_meta
from dataplane.names import PartitionKey
from dataplane.retrier.redrive_job import FAR, RedriveJob, fact_of, is_for, returned_record
from dataplane.retrier.retry_messages import retry_out_partition
from dataplane.retrier.traces import traced
from dataplane.runtime.lanes.context import LaneContext
from dataplane.runtime.lanes.deadletters import fits
from dataplane.runtime.lanes.placement import at_origin

log = logging.getLogger(__name__)

READ_SIZE: Final = 500
ASK_S: Final = 1.0
MOST_IN_FLIGHT: Final = 1_000
BURST_S: Final = 0.25  # a burst is what the rate allows in this time


class RedrivenToken(NamedTuple):
    """Token of a record that a redriver has produced."""

    redriver: "Redriver"
    place: PartitionKey
    offset: int
    meta: MessageMeta


class Redriver:
    """Executor of one redrive job, at the job's own rate."""

    def __init__(self, lane: LaneContext, job: RedriveJob, rate_per_s: float) -> None:
        self._lane = lane
        self.job = job
        self._rate_per_s = max(0.1, rate_per_s)
        self._allowance = 0.0
        self._allowed_s = time.monotonic()
        self._consumer: Any = place_reader(lane.settings.kafka)
        self._at: tuple[PartitionKey, int] | None = None  # the partition that is being read, and its next offset
        self._read: list[Message] = []  # not yet examined, the next one last
        self._reported = _ReportedProgress(lane)

    def poll(self, now_s: float) -> None:
        """Read and produce as many records as the rate allows, without waiting."""
        most = 1.0 + self._rate_per_s * BURST_S
        self._allowance = min(most, self._allowance + (now_s - self._allowed_s) * self._rate_per_s)
        self._allowed_s = now_s
        while self._allowance >= 1 and self.job.in_flight < MOST_IN_FLIGHT:
            if not self._read and not self._fetch():
                return
            self._examine(self._read.pop())

    def stored(self, token: RedrivenToken) -> None:
        """Report to the ledger that a record is stored on its new topic."""
        meta = token.meta
        self._lane.facts.add(meta.account, meta.bucket, fact_of(self.job.what, meta), meta.position)
        self.job.stored(token.place, token.offset)

    def reached(self) -> dict[PartitionKey, int] | None:
        """Return the progress that the ledger knows, if it is new, else None. Call before each checkpoint."""
        return self._reported.known(self.job.reached())

    def report_again(self) -> None:
        """Make `reached` return the progress once more, because the job's record has changed."""
        self._reported.forget()

    @property
    def is_over(self) -> bool:
        """True when the job is complete."""
        return self.job.is_over

    def close(self) -> None:
        """Close the Kafka consumer."""
        self._consumer.close()

    # -- reading ---------------------------------------------------------------------------------------------------

    def _fetch(self) -> bool:
        """Read at the next offset of the job; return True if there are messages to examine."""
        wanted = self.job.next_offset()
        if wanted is None:
            return False
        if self._at is None or self._at[0] != wanted[0] or wanted[1] - self._at[1] > FAR or wanted[1] < self._at[1]:
            (topic, partition), offset = wanted
            self._consumer.assign([TopicPartition(topic, partition, offset)])
            self._at = wanted
        for message in self._consumer.consume(READ_SIZE, 0):
            self._read.append(message)
        self._read.reverse()
        return bool(self._read)

    def _examine(self, message: Message) -> None:
        error = message.error()
        place = (str(message.topic()), int(message.partition()))
        if self._at is None or place != self._at[0]:
            return  # fetched before the last seek
        if error is not None:
            if error.code() == KafkaError._PARTITION_EOF:
                self.job.ended(place)
            elif error.code() == KafkaError._AUTO_OFFSET_RESET:
                self._leave_out_of_range(place)
            return
        offset = int(message.offset())
        self._at = (place, offset + 1)
        if self.job.wants(place, offset):
            self._return_record(message, place, offset)

    def _leave_out_of_range(self, place: PartitionKey) -> None:
        """Skip offsets that retention has deleted, or that are past the end because the broker has lost them.

        Never read from the beginning instead: other records may have these offsets by now.
        """
        try:
            low, high = self._consumer.get_watermark_offsets(TopicPartition(*place), timeout=ASK_S)
        except KafkaException:
            low, high = 0, 1 << 62  # the broker is unavailable: the next fetch checks again
        wanted = self.job.next_offset()
        if wanted is not None and wanted[0] == place and wanted[1] >= high:
            log.error("%s/%s ends at %d: records from %d on are lost", *place, high, wanted[1])
            self.job.ended(place)
        else:
            self.job.skip_below(place, low)
        self._at = None

    def _return_record(self, message: Message, place: PartitionKey, offset: int) -> None:
        headers: Headers = message.headers() or []
        try:
            meta = read_meta(headers)
        except (KeyError, msgspec.DecodeError):
            self.job.skip(place, offset)
            return
        if original_of(headers) or not is_for(self.job, meta, dead_letter_reason(headers)):
            self.job.skip(place, offset)
            return
        self._allowance -= 1
        meta.revision = self._revision_of(meta)
        job, record = self.job, self._lane.table.destination(meta.pipe, meta.destination)
        as_of = record.version if record is not None else 0
        meta, headers = returned_record(job.what, meta, headers, through=job.through, as_of=as_of)
        if self._lane.tracing is not None:
            headers = traced(self._lane.tracing, job.what, meta, headers)
        topic, key = self._lane.cell.topics["retry-out" if meta.destination else "ingest"], message.key()
        if meta.destination:
            routing = retry_out_partition(self._lane.table, meta, key, topic.partitions)
        else:
            routing = at_origin(meta, key, topic.partitions)
        if not fits(message.value(), routing.get("key"), headers):
            self.job.skip(place, offset)
            return
        token = RedrivenToken(self, place, offset, meta)
        self._lane.usage.add(meta.pipe, 1, len(message.value() or b""), 1)
        self._lane.producer.send(topic.name, token, value=message.value(), headers=headers, **routing)

    def _revision_of(self, meta: MessageMeta) -> int:
        """Return the revision to run: for a message that returns to the steps, the one with the highest weight now."""
        pipe = self._lane.table.pipe(meta.pipe)
        if meta.destination or pipe is None:
            return meta.revision
        return max(pipe.weights, key=lambda weight: (weight[1], weight[0]))[0]


class _ReportedProgress:
    """Progress that is withheld until an audit record with its facts is stored."""

    def __init__(self, lane: LaneContext) -> None:
        self._lane = lane
        self._pending: tuple[int, dict[PartitionKey, int]] | None = None
        self._last: dict[PartitionKey, int] | None = None

    def forget(self) -> None:
        """Forget the last report, so that the progress is reported again."""
        self._last = None

    def known(self, reached: dict[PartitionKey, int]) -> dict[PartitionKey, int] | None:
        """Take the progress before a checkpoint; return the progress that the ledger knows, if it is new, else None."""
        reported = None
        if self._pending is not None and self._lane.audits.stored >= self._pending[0]:
            reported, self._pending = self._pending[1], None
            self._last = reported
        if self._pending is None and reached != self._last:
            self._pending = (self._lane.audits.begun + (1 if len(self._lane.facts) else 0), reached)
        return reported


def place_reader(kafka: str) -> Consumer:
    """Return a consumer for assigned partitions; it joins no group and commits nothing."""
    return make_consumer(
        {
            "bootstrap.servers": kafka,
            "group.id": "penstock-redriver",  # the client requires a group; nothing is ever committed
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "auto.offset.reset": "error",  # never read from another offset than the assigned one
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 50,
            "fetch.queue.backoff.ms": 10,  # after a full queue; the default of 1 s would be the rate's limit
            "queued.min.messages": 10_000,
            "queued.max.messages.kbytes": 8 * 1024,
            "reconnect.backoff.max.ms": 1_000,
            "log_level": 3,
        }
    )
