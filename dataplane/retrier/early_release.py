"""Early release: returns the waiting messages of a healthy destination from the delay tiers at once, at a limited rate.

It scans the tiers once for all destinations that have recovered, then returns their messages, about as fast as they
came in: the shorter a tier, the earlier, because its messages fall due earlier. It reports what it will return, so that
the tiers' own lanes keep these messages, and what it has returned, so that they skip them. A cell's first retrier lane
does this.
"""

import logging
import time
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from confluent_kafka import KafkaError, KafkaException, TopicPartition
from msgspec import Struct, field
from pyroaring import BitMap64

from dataplane.kafka_clients import make_offset_client
from dataplane.kafka_errors import raise_first_error
from dataplane.ledger.meta import MessageMeta, read_meta
from dataplane.names import DELAYS_S, PartitionKey, lane_group
from dataplane.retrier.redrive_job import RedriveJob
from dataplane.retrier.redriver import Redriver, place_reader
from dataplane.retrier.release_pacer import DestinationKey
from dataplane.retrier.signal_state import SignalReader, SignalState, highest
from dataplane.runtime.lanes.context import LaneContext
from dataplane.tables.redrives import (
    REDRIVES_VERSION,
    EarlyReleaseProgress,
    early_release_key,
    encode_progress,
    format_place,
)

log = logging.getLogger(__name__)

A_TURN: Final = 2_000
EVERY_S: Final = 5.0  # between scans, because a scan reads everything in the tiers, of all destinations
LEAST_RATE_PER_S: Final = 10.0
SHARE: Final = 0.9
ASK_S: Final = 2.0
_NOTHING: Final[Mapping[PartitionKey, int]] = {}


class WaitingByDestination(Struct):
    """Messages that wait for one destination, and the times at which the first and the last came in."""

    offsets: dict[PartitionKey, BitMap64] = field(default_factory=dict)
    count: int = 0
    first_us: int = 1 << 62
    last_us: int = 0

    def add(self, place: PartitionKey, offset: int, came_us: int) -> None:
        """Add one message; `came_us`: Unix time in microseconds at which it came in."""
        self.offsets.setdefault(place, BitMap64()).add(offset)
        self.count += 1
        self.first_us = min(self.first_us, came_us)
        self.last_us = max(self.last_us, came_us)

    def rate_per_s(self, most: float) -> float:
        """Return the release rate, at most `most`: SHARE of the rate at which the messages came in.

        New messages come on top, so the destination gets less than twice its usual load.
        """
        took_s = max(1.0, (self.last_us - self.first_us) / 1_000_000)
        return min(most, max(LEAST_RATE_PER_S, SHARE * self.count / took_s))


class TierScan:
    """One scan of the tiers, from the offsets that their lanes have committed to the end of each partition.

    Messages that an earlier release has returned stay there until their tier's lane commits past them. They do not
    count: they would be returned once more, and raise the rate.
    """

    def __init__(self, lane: LaneContext, names: set[DestinationKey], state: SignalState) -> None:
        """Start the scan. Raises KafkaException if the committed offsets cannot be read now."""
        self.found = {name: WaitingByDestination() for name in names}
        self._state = state
        self.ends: dict[PartitionKey, int] = {}
        self._consumer: Any = place_reader(lane.settings.kafka)
        try:
            partitions = committed(lane)
        except KafkaException:
            self._consumer.close()
            raise
        self._open = {(place.topic, place.partition) for place in partitions}
        self._consumer.assign(partitions)

    def poll(self) -> bool:
        """Read on without waiting; return True when all partitions have been read to their ends."""
        for message in self._consumer.consume(A_TURN, 0):
            self._see(message)
        return not self._open

    def close(self) -> None:
        """Close the Kafka consumers."""
        self._consumer.close()

    def _see(self, message: Any) -> None:
        place, error = (message.topic(), message.partition()), message.error()
        if error is not None:
            if error.code() == KafkaError._PARTITION_EOF and place in self._open:
                self._open.discard(place)
                self.ends[place] = message.offset()
            elif error.code() == KafkaError._AUTO_OFFSET_RESET:  # out of range: never read from another offset
                self._open.discard(place)
            return
        if place not in self._open:
            return  # arrived after the partition was read to its end
        try:
            meta = read_meta(message.headers() or [])
        except (KeyError, msgspec.DecodeError):
            return  # the partition's owner dead-letters it
        name, offset = DestinationKey(meta.pipe, meta.destination), message.offset()
        found = self.found.get(name)
        if found is not None and not meta.asked_us and not self._state.was_returned_early(name, place, offset):
            found.add(place, offset, _came_us(meta, message.timestamp()[1] * 1_000))


def _came_us(meta: MessageMeta, stored_us: int) -> int:
    """Return when a message came in: at ingest or, for a copy, whose event is old, at its first attempt.

    stored_us: time at which the tier stored it, for a copy without an attempt
    """
    return (meta.first_us or stored_us) if meta.replay else meta.ingest_time_us


class EarlyRelease:
    """Early releases of a lane: call `poll` on every pass and `report` before every checkpoint."""

    def __init__(self, lane: LaneContext, reader: SignalReader) -> None:
        self._lane = lane
        self._reader = reader
        self._signals = lane.cell.topics["signals"].name
        self._due_s = 0.0
        self._scan: TierScan | None = None
        self._redrivers: dict[DestinationKey, Redriver] = {}
        self._ends: dict[DestinationKey, dict[PartitionKey, int]] = {}
        self._recovered: set[DestinationKey] = set()
        self._failing: set[DestinationKey] = set()  # destinations whose breaker has opened during their release

    def poll(self, now_s: float) -> None:
        """Scan the tiers for destinations that have recovered, and return their messages."""
        if self._reader.at_end:
            self._recovered |= self._reader.state.take_recovered()
        if self._scan is not None:
            self._continue(self._scan)
        elif (names := self._recovered - self._redrivers.keys()) and now_s >= self._due_s:
            self._due_s = now_s + EVERY_S
            self._begin(names)
        for name, redriver in self._redrivers.items():
            if self._is_well(name):
                redriver.poll(now_s)
            elif name not in self._failing:
                self._failing.add(name)
                redriver.report_again()

    def report(self) -> None:
        """Report the progress that the ledger already knows; close the releases that are complete or interrupted."""
        for name, redriver in list(self._redrivers.items()):
            if (known := redriver.reached()) is None:
                continue
            is_stored = known == redriver.job.reached() and not redriver.job.in_flight
            if is_stored and redriver.is_over:
                # After another recovery meanwhile, a scan follows; until then other messages wait as during a release.
                self._report_progress(name, self._ends[name], running=name in self._recovered)
                log.info("early release finished: pipe=%s destination=%s messages=%d", *name, redriver.job.total)
                self._close(name)
            elif is_stored and name in self._failing:
                # Lanes of the tiers delay the rest once more: only a new scan knows where it is.
                self._report_progress(name, known, running=True)
                log.info("early release interrupted: pipe=%s destination=%s", *name)
                self._close(name)
            else:
                self._report_progress(name, known, running=True, ends=self._ends[name])

    def _close(self, name: DestinationKey) -> None:
        self._redrivers.pop(name).close()
        del self._ends[name]
        self._failing.discard(name)

    def close(self) -> None:
        """Close the Kafka consumers."""
        if self._scan is not None:
            self._scan.close()
        for redriver in self._redrivers.values():
            redriver.close()

    @property
    def is_busy(self) -> bool:
        """True while a scan or a release is in progress."""
        return self._scan is not None or bool(self._redrivers)

    def _is_well(self, name: DestinationKey) -> bool:
        """Return True if the breaker has stayed closed; otherwise the rest waits for the next recovery."""
        if name in self._failing:
            return False
        record = self._lane.table.destination(*name)
        return self._reader.state.shut_until_us(name, record.version if record else 0) is None

    def _begin(self, names: set[DestinationKey]) -> None:
        try:
            self._scan = TierScan(self._lane, names, self._reader.state)
        except KafkaException as exc:
            log.warning("early release postponed: %s", exc)  # coordinator unavailable; retried after EVERY_S
            return
        self._recovered -= names

    def _continue(self, scan: TierScan) -> None:
        if not scan.poll():
            return
        scan.close()
        self._scan = None
        for name, found in scan.found.items():
            if not found.count:
                self._report_progress(name, scan.ends)
                continue
            self._report_progress(name, {}, running=True, ends=scan.ends)
            job = RedriveJob(name, "ahead", self._by_delay(found.offsets), {})
            self._ends[name] = scan.ends
            self._redrivers[name] = Redriver(self._lane, job, found.rate_per_s(self._lane.settings.retry_rate_per_s))

    def _by_delay(self, offsets: dict[PartitionKey, BitMap64]) -> dict[PartitionKey, BitMap64]:
        tiers = [self._lane.cell.topics[tier].name for tier in DELAYS_S]
        return {place: offsets[place] for place in sorted(offsets, key=lambda place: (tiers.index(place[0]), place[1]))}

    def _report_progress(
        self,
        name: DestinationKey,
        known: Mapping[PartitionKey, int],
        *,
        running: bool = False,
        ends: Mapping[PartitionKey, int] = _NOTHING,
    ) -> None:
        before = self._reader.state.early_releases.get(name)
        reached = highest(before.reached if before else {}, _by_text(known))
        now_us = time.time_ns() // 1_000
        progress = EarlyReleaseProgress(REDRIVES_VERSION, *name, now_us, reached, running, _by_text(ends))
        self._reader.state.note_early_release(progress)  # now: the next scan may begin before the record is read
        self._lane.producer.send(
            self._signals, None, key=early_release_key(*name).encode(), value=encode_progress(progress)
        )


def _by_text(offsets: Mapping[PartitionKey, int]) -> dict[str, int]:
    return {format_place(place): offset for place, offset in offsets.items()}


def committed(lane: LaneContext) -> list[TopicPartition]:
    """Return the partitions of all tiers with the offsets that their lanes have committed. Raises KafkaException."""
    topics = [lane.cell.topics[tier] for tier in DELAYS_S]
    group = lane_group(lane.identity.cell, "retrier")
    consumer = make_offset_client(lane.settings.kafka, group)
    try:
        partitions = [TopicPartition(topic.name, number) for topic in topics for number in range(topic.partitions)]
        found: list[TopicPartition] = consumer.committed(partitions, timeout=ASK_S)
    finally:
        consumer.close()
    raise_first_error(found)
    return found
