"""A carrier brings messages back beside the lane's work: held ones, dead ones, or early ones.

Reads by assignment, in no group: no committed offset is touched, and a destination that is paused for a week blocks
nobody. Progress is told when the records are stored and the ledger has their facts; whoever is started anew goes on
from there.
"""

import logging
import time
from typing import Any, Final, NamedTuple

import msgspec
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from dataplane.ledger.deadletter import death_of, original_of
from dataplane.ledger.meta import Headers, Meta, read_meta
from dataplane.retrier.errand import FAR, Errand, brought_back, fact_of, is_for
from dataplane.retrier.parcels import way_back, way_out
from dataplane.retrier.traces import traced
from dataplane.runtime.deadletters import fits
from dataplane.runtime.lane import Lane
from dataplane.tables.moves import Place

log = logging.getLogger(__name__)

A_READ: Final = 500
ASK_S: Final = 1.0
MOST_IN_FLIGHT: Final = 1_000
BURST_S: Final = 0.25  # what an errand may do at once, of what it may do in a second


class Moved(NamedTuple):
    """Token of a record that an errand has brought back."""

    carrier: "Carrier"
    place: Place
    offset: int
    meta: Meta


class Carrier:
    """Does one errand, at its own rate."""

    def __init__(self, lane: Lane, errand: Errand, rate_per_s: float) -> None:
        self._lane = lane
        self.errand = errand
        self._rate_per_s = max(0.1, rate_per_s)
        self._allowance = 0.0
        self._allowed_s = time.monotonic()
        self._consumer: Any = place_reader(lane.settings.kafka)
        self._at: tuple[Place, int] | None = None  # what is being read, and the next offset of it
        self._read: list[Message] = []  # not yet looked at, the next one last
        self._told = _Told(lane)

    def turn(self, now_s: float) -> None:
        """Bring back what the rate allows."""
        most = 1.0 + self._rate_per_s * BURST_S
        self._allowance = min(most, self._allowance + (now_s - self._allowed_s) * self._rate_per_s)
        self._allowed_s = now_s
        while self._allowance >= 1 and self.errand.in_flight < MOST_IN_FLIGHT:
            if not self._read and not self._fetch():
                return
            self._look_at(self._read.pop())

    def stored(self, token: Moved) -> None:
        """A record is on retry-out: tell the ledger."""
        meta = token.meta
        self._lane.facts.add(meta.pipe, meta.bucket, fact_of(self.errand.what, meta), meta.position)
        self.errand.stored(token.place, token.offset)

    def reached(self) -> dict[Place, int] | None:
        """How far the errand has come for good, if that is new; else None. Asked before each checkpoint."""
        return self._told.known(self.errand.reached())

    def tell_again(self) -> None:
        """Something else about the errand has changed: `reached` is news once more."""
        self._told.forget()

    @property
    def is_over(self) -> bool:
        """Everything is done."""
        return self.errand.is_over

    def close(self) -> None:
        """Read no more."""
        self._consumer.close()

    # -- reading ---------------------------------------------------------------------------------------------------

    def _fetch(self) -> bool:
        """Read on where the errand wants to; whether there is something to look at now."""
        wanted = self.errand.next_place()
        if wanted is None:
            return False
        if self._at is None or self._at[0] != wanted[0] or wanted[1] - self._at[1] > FAR or wanted[1] < self._at[1]:
            (topic, partition), offset = wanted
            self._consumer.assign([TopicPartition(topic, partition, offset)])
            self._at = wanted
        for message in self._consumer.consume(A_READ, 0):
            self._read.append(message)
        self._read.reverse()
        return bool(self._read)

    def _look_at(self, message: Message) -> None:
        error = message.error()
        place = (str(message.topic()), int(message.partition()))
        if self._at is None or place != self._at[0]:
            return  # fetched before the last jump
        if error is not None:
            if error.code() == KafkaError._PARTITION_EOF:
                self.errand.ended(place)
            elif error.code() == KafkaError._AUTO_OFFSET_RESET:
                self._leave_out_of_range(place)
            return
        offset = int(message.offset())
        self._at = (place, offset + 1)
        if self.errand.wants(place, offset):
            self._bring_back(message, place, offset)

    def _leave_out_of_range(self, place: Place) -> None:
        """Give up what retention has taken, and what lies past the end: the broker has lost that.

        Never read from the beginning instead: other records may have the offsets by now.
        """
        try:
            low, high = self._consumer.get_watermark_offsets(TopicPartition(*place), timeout=ASK_S)
        except KafkaException:
            low, high = 0, 1 << 62  # the broker is away: the next reading asks again
        wanted = self.errand.next_place()
        if wanted is not None and wanted[0] == place and wanted[1] >= high:
            log.error("%s/%s ends at %d: records from %d on are lost", *place, high, wanted[1])
            self.errand.ended(place)
        else:
            self.errand.gone_below(place, low)
        self._at = None

    def _bring_back(self, message: Message, place: Place, offset: int) -> None:
        headers: Headers = message.headers() or []
        try:
            meta = read_meta(headers)
        except (KeyError, msgspec.DecodeError):
            self.errand.useless(place, offset)
            return
        if original_of(headers) or not is_for(self.errand, meta, death_of(headers).node):
            self.errand.useless(place, offset)
            return
        self._allowance -= 1
        meta.revision = self._revision_of(meta)
        errand, to = self.errand, self._lane.table.destination(meta.pipe, meta.destination)
        as_of = to.version if to is not None else 0
        meta, headers = brought_back(errand.what, meta, headers, through=errand.through, as_of=as_of)
        if self._lane.tracing is not None:
            headers = traced(self._lane.tracing, errand.what, meta, headers)
        topic = self._lane.cell.topics["retry-out" if meta.destination else "ingest"]
        way = way_out if meta.destination else way_back
        record = way(meta, message.key(), topic.partitions)
        if not fits(message.value(), record.get("key"), headers):
            self.errand.useless(place, offset)
            return
        token = Moved(self, place, offset, meta)
        self._lane.usage.add(meta.pipe, 1, len(message.value() or b""), 1)
        self._lane.outbox.send(topic.name, token, value=message.value(), headers=headers, **record)

    def _revision_of(self, meta: Meta) -> int:
        """What was held before the steps has not been run: it is run by the revision that most events get now."""
        pipe = self._lane.table.pipe(meta.pipe)
        if meta.destination or pipe is None:
            return meta.revision
        return max(pipe.weights, key=lambda weight: (weight[1], weight[0]))[0]


class _Told:
    """Holds back what was reached until an audit record with its facts is stored."""

    def __init__(self, lane: Lane) -> None:
        self._lane = lane
        self._pending: tuple[int, dict[Place, int]] | None = None
        self._last: dict[Place, int] | None = None

    def forget(self) -> None:
        """Nothing has been told."""
        self._last = None

    def known(self, reached: dict[Place, int]) -> dict[Place, int] | None:
        """Call before each checkpoint with how far things are; returns how far the ledger knows, if that is new."""
        news = None
        if self._pending is not None and self._lane.audits.stored >= self._pending[0]:
            news, self._pending = self._pending[1], None
            self._last = news
        if self._pending is None and reached != self._last:
            self._pending = (self._lane.audits.begun + (1 if len(self._lane.facts) else 0), reached)
        return news


def place_reader(kafka: str) -> Consumer:
    """A consumer for assigned places, in no group."""
    return Consumer(
        {
            "bootstrap.servers": kafka,
            "group.id": "penstock-mover",  # the client wants a name; nothing is ever committed
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "auto.offset.reset": "error",  # never from another place than asked for
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 50,
            "queued.min.messages": 1_000,
            "queued.max.messages.kbytes": 8 * 1024,
            "reconnect.backoff.max.ms": 1_000,
            "log_level": 3,
        }
    )
