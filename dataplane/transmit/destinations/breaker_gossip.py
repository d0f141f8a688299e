"""Exchange of destination states between lanes: publish this lane's signals, and apply the signals of other lanes.

Signals are published at most once a second per destination; a lost signal costs probes, never messages.
"""

import time
from typing import Any, Final

import msgspec
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from dataplane.kafka_clients import make_consumer
from dataplane.runtime.lanes.context import LaneContext
from dataplane.tables.signals import SIGNAL_VERSION, DestinationSignal, decode_signal, encode_signal, signal_key
from dataplane.transmit.destinations.registry import TargetRegistry
from dataplane.transmit.destinations.targets import DestinationTarget

EVERY_S: Final = 1.0
READ_EVERY_S: Final = 0.2
READ_LIMIT: Final = 1_000
_KINDS: Final = ("transmit-", "transmit-retry-")

SignalFields = tuple[Any, ...]


class BreakerGossip:
    """Publisher and reader of signals. `poll` is called on every pass of the loop, from the lane's thread."""

    def __init__(self, lane: LaneContext, targets: TargetRegistry) -> None:
        self._lane = lane
        self._targets = targets
        self._topic = lane.cell.topics["signals"].name
        self._reported: dict[DestinationTarget, SignalFields] = {}
        self._began_us = time.time_ns() // 1_000
        self._publish_due = self._read_due = 0.0
        self._consumer: Any = topic_reader(lane.settings.kafka, self._topic)

    def poll(self, now_s: float) -> None:
        """Read new signals and publish changed ones, each when it is due."""
        if now_s >= self._read_due:
            self._read_due = now_s + READ_EVERY_S
            self._read()
        if now_s >= self._publish_due:
            self._publish_due = now_s + EVERY_S
            for target in self._targets:
                self._report(target, now_s)

    def close(self) -> None:
        """Close the consumer."""
        self._consumer.close()

    def _report(self, target: DestinationTarget, now_s: float) -> None:
        view = view_of(target)
        settles = target.is_close_unpublished and target.breaker.state == "closed"
        if self._reported.get(target, PLAIN) == view and not settles:
            return
        target.is_close_unpublished = target.is_close_unpublished and not settles
        self._reported[target] = view
        signal = signal_of(target, self._lane.identity.cell, self._lane.identity.writer, now_s)
        self._lane.producer.send(self._topic, None, key=signal_key(signal).encode(), value=encode_signal(signal))

    def _read(self) -> None:
        for message in self._consumer.consume(READ_LIMIT, 0):
            if message.error() is None and message.value() is not None:
                self._take(message.key(), message.value())

    def _take(self, key: bytes | None, value: bytes) -> None:
        """Apply a record of the topic. Records other than signals of lanes are skipped: the topic has more kinds."""
        if key is None or not key.decode("utf-8", "replace").rpartition("/")[2].startswith(_KINDS):
            return
        try:
            signal = decode_signal(value)
        except msgspec.DecodeError:
            return  # written by a newer release
        if signal.writer != self._lane.identity.writer or signal.at_us < self._began_us:
            # A signal that this lane published before its restart counts, an echo of the current run does not.
            self._targets.on_signal(signal)


def topic_reader(kafka: str, topic: str) -> Consumer:
    """Return a consumer of a whole compacted topic, partition 0, that joins no group and commits nothing."""
    consumer = make_consumer(
        {
            "bootstrap.servers": kafka,
            "group.id": "penstock-gossip-reader",  # required by the client
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": 1_000,
            "enable.partition.eof": True,
            "log_level": 3,
        }
    )
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    return consumer


def view_of(target: DestinationTarget) -> SignalFields:
    """Return the part of a target's state whose change is published.

    Concurrency counts in coarse steps (powers of two), because it changes every second while it adapts.
    """
    allowed = int(target.throttle.allowed).bit_length() if target.throttle.reduced else 0
    return (target.breaker.state, round(target.breaker.until_s, 1), target.suspended, allowed, _reports_slow(target))


PLAIN: Final[SignalFields] = ("closed", 0.0, "", 0, False)


def _reports_slow(target: DestinationTarget) -> bool:
    """Return True if this lane reports the destination as slow; never for an ordered one, which stays in its lane."""
    return target.slowness.is_slow and not target.ordered


def signal_of(target: DestinationTarget, cell: str, writer: str, now_s: float) -> DestinationSignal:
    """Return the target's state as a signal; monotonic times become Unix time."""
    now_us = time.time_ns() // 1_000
    until_s = target.breaker.until_s
    return DestinationSignal(
        version=SIGNAL_VERSION,
        cell=cell,
        writer=writer,
        pipe=target.record.pipe,
        destination=target.record.name,
        at_us=now_us,
        breaker=target.breaker.state,
        until_us=now_us + int((until_s - now_s) * 1_000_000) if until_s else 0,
        concurrency=int(target.throttle.allowed),
        slow=_reports_slow(target),
        suspended=target.suspended,
        status=target.last_status,
        reason=target.last_reason,
        in_a_row=target.in_a_row,
        of_version=target.record.version,
    )
