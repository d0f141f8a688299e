"""Early release: when a destination is well again, what waits for it in the tiers comes back at once, not too fast.

Looks through the tiers once for all destinations that have recovered, then brings their messages back in order, about
as fast as they came in. What was brought back is told, so that the tiers' own lanes pass it over. Done by a cell's
first lane.
"""

import logging
import time
from typing import Any, Final

import msgspec
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from msgspec import Struct, field
from pyroaring import BitMap64

from dataplane.ledger.meta import read_meta
from dataplane.names import DELAYS_S, lane_group
from dataplane.retrier.errand import Errand
from dataplane.retrier.mover import Carrier, place_reader
from dataplane.retrier.news import NewsReader, highest
from dataplane.retrier.pace import Name
from dataplane.runtime.lane import Lane
from dataplane.tables.moves import MOVES_VERSION, Ahead, Place, ahead_key, encode_progress, format_place

log = logging.getLogger(__name__)

A_TURN: Final = 2_000
EVERY_S: Final = 5.0  # a look through the tiers reads all that waits there, of everybody
LEAST_RATE_PER_S: Final = 10.0
SHARE: Final = 0.9
ASK_S: Final = 2.0


class Found(Struct):
    """What waits for one destination, and when the first and the last of it were taken in."""

    offsets: dict[Place, BitMap64] = field(default_factory=dict)
    count: int = 0
    first_us: int = 1 << 62
    last_us: int = 0

    def add(self, place: Place, offset: int, ingest_time_us: int) -> None:
        """One message."""
        self.offsets.setdefault(place, BitMap64()).add(offset)
        self.count += 1
        self.first_us = min(self.first_us, ingest_time_us)
        self.last_us = max(self.last_us, ingest_time_us)

    def rate_per_s(self, most: float) -> float:
        """A little slower than they came: with what is new beside it the destination gets less than twice its load."""
        took_s = max(1.0, (self.last_us - self.first_us) / 1_000_000)
        return min(most, max(LEAST_RATE_PER_S, SHARE * self.count / took_s))


class Look:
    """One look through the tiers, from what their lanes have committed to their ends."""

    def __init__(self, lane: Lane, names: set[Name]) -> None:
        """Raises KafkaException if the committed offsets cannot be had now."""
        self.found = {name: Found() for name in names}
        self.ends: dict[Place, int] = {}
        self._consumer: Any = place_reader(lane.settings.kafka)
        try:
            places = committed(lane)
        except KafkaException:
            self._consumer.close()
            raise
        self._open = {(place.topic, place.partition) for place in places}
        self._consumer.assign(places)

    def turn(self) -> bool:
        """Read on; whether everything has been seen."""
        for message in self._consumer.consume(A_TURN, 0):
            self._see(message)
        return not self._open

    def close(self) -> None:
        """Read no more."""
        self._consumer.close()

    def _see(self, message: Any) -> None:
        place, error = (message.topic(), message.partition()), message.error()
        if error is not None:
            if error.code() == KafkaError._PARTITION_EOF and place in self._open:
                self._open.discard(place)
                self.ends[place] = message.offset()
            elif error.code() == KafkaError._AUTO_OFFSET_RESET:  # nothing is read from another place than asked for
                self._open.discard(place)
            return
        if place not in self._open:
            return  # came after the end was seen
        try:
            meta = read_meta(message.headers() or [])
        except (KeyError, msgspec.DecodeError):
            return  # whoever owns the partition buries it
        found = self.found.get(Name(meta.pipe, meta.destination))
        if found is not None and not meta.asked_us:
            found.add(place, message.offset(), meta.ingest_time_us)


class EarlyRelease:
    """`turn` on every pass, `report` before every checkpoint."""

    def __init__(self, lane: Lane, reader: NewsReader) -> None:
        self._lane = lane
        self._reader = reader
        self._signals = lane.cell.topics["signals"].name
        self._due_s = 0.0
        self._look: Look | None = None
        self._carriers: dict[Name, Carrier] = {}
        self._ends: dict[Name, dict[Place, int]] = {}
        self._recovered: set[Name] = set()

    def turn(self, now_s: float) -> None:
        """Look for what may come back, and bring it back."""
        if self._reader.at_end:
            self._recovered |= self._reader.news.take_recovered() - self._carriers.keys()
        if self._look is not None:
            self._go_on(self._look)
        elif self._recovered and now_s >= self._due_s:
            self._due_s = now_s + EVERY_S
            self._begin()
        for name, carrier in self._carriers.items():
            if self._is_well(name):
                carrier.turn(now_s)

    def report(self) -> None:
        """Tell what is back, as far as the ledger knows it already."""
        for name, carrier in list(self._carriers.items()):
            if (known := carrier.reached()) is None:
                continue
            over = carrier.is_over and known == carrier.errand.reached()
            self._tell(name, self._ends[name] if over else known, running=not over)
            if over:
                log.info("released ahead: pipe=%s destination=%s messages=%d", *name, carrier.errand.total)
                carrier.close()
                del self._carriers[name], self._ends[name]

    def close(self) -> None:
        """Read no more."""
        if self._look is not None:
            self._look.close()
        for carrier in self._carriers.values():
            carrier.close()

    @property
    def is_busy(self) -> bool:
        """Whether something is under way."""
        return self._look is not None or bool(self._carriers)

    def _is_well(self, name: Name) -> bool:
        """Whether the breaker is still closed; if not, the rest waits for the next recovery."""
        record = self._lane.table.destination(*name)
        return self._reader.news.shut_until_us(name, record.version if record else 0) is None

    def _begin(self) -> None:
        try:
            self._look = Look(self._lane, self._recovered)
        except KafkaException as exc:
            log.warning("early release waits: %s", exc)  # the coordinator is away; asked again after a while
            return
        self._recovered = set()

    def _go_on(self, look: Look) -> None:
        if not look.turn():
            return
        look.close()
        self._look = None
        for name, found in look.found.items():
            if not found.count:
                self._tell(name, look.ends)
                continue
            self._tell(name, {}, running=True)
            errand = Errand(name, "ahead", found.offsets, {})
            self._ends[name] = look.ends
            self._carriers[name] = Carrier(self._lane, errand, found.rate_per_s(self._lane.settings.retry_rate_per_s))

    def _tell(self, name: Name, known: dict[Place, int], *, running: bool = False) -> None:
        before = self._reader.news.ahead.get(name)
        reached = highest(before.reached if before else {}, {format_place(p): offset for p, offset in known.items()})
        ahead = Ahead(MOVES_VERSION, *name, time.time_ns() // 1_000, reached, running)
        self._lane.outbox.send(self._signals, None, key=ahead_key(*name).encode(), value=encode_progress(ahead))


def committed(lane: Lane) -> list[TopicPartition]:
    """The places of the tiers, each at the offset that its lane has committed. Raises KafkaException."""
    topics = [lane.cell.topics[tier] for tier in DELAYS_S]
    group = lane_group(lane.identity.cell, "retrier")
    asker = Consumer({"bootstrap.servers": lane.settings.kafka, "group.id": group, "log_level": 3})
    try:
        places = [TopicPartition(topic.name, number) for topic in topics for number in range(topic.partitions)]
        found: list[TopicPartition] = asker.committed(places, timeout=ASK_S)
    finally:
        asker.close()
    if error := next((place.error for place in found if place.error), None):
        raise KafkaException(error)
    return found
