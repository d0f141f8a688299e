"""Gossip about destinations: this lane's view goes out on the signals topic, other lanes' views come in from it.

At most once a second each way; a signal that is lost costs probes, never messages.
"""

import time
from typing import Any, Final

import msgspec
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from dataplane.runtime.lane import Lane
from dataplane.tables.signals import SIGNAL_VERSION, Signal, decode_signal, encode_signal, signal_key
from dataplane.transmit.registry import Targets
from dataplane.transmit.targets import Target

EVERY_S: Final = 1.0
READ_EVERY_S: Final = 0.2
READ_LIMIT: Final = 1_000
_KINDS: Final = ("transmit-", "transmit-retry-")

View = tuple[Any, ...]


class Gossip:
    """`turn` on every pass of the loop; it does something when its time has come. Used from the lane's thread."""

    def __init__(self, lane: Lane, targets: Targets) -> None:
        self._lane = lane
        self._targets = targets
        self._topic = lane.cell.topics["signals"].name
        self._told: dict[Target, View] = {}
        self._began_us = time.time_ns() // 1_000
        self._tell_due = self._read_due = 0.0
        self._consumer: Any = topic_reader(lane.settings.kafka, self._topic)

    def turn(self, now_s: float) -> None:
        """Tell what has changed, read what has come."""
        if now_s >= self._read_due:
            self._read_due = now_s + READ_EVERY_S
            self._read()
        if now_s >= self._tell_due:
            self._tell_due = now_s + EVERY_S
            for target in self._targets:
                self._tell(target, now_s)

    def close(self) -> None:
        """Leave the topic."""
        self._consumer.close()

    def _tell(self, target: Target, now_s: float) -> None:
        view = view_of(target)
        settles = target.owes_word and target.breaker.state == "closed"
        if self._told.get(target, PLAIN) == view and not settles:
            return
        target.owes_word = target.owes_word and not settles
        self._told[target] = view
        signal = signal_of(target, self._lane.identity.cell, self._lane.identity.writer, now_s)
        self._lane.outbox.send(self._topic, None, key=signal_key(signal).encode(), value=encode_signal(signal))

    def _read(self) -> None:
        for message in self._consumer.consume(READ_LIMIT, 0):
            if message.error() is None and message.value() is not None:
                self._take(message.key(), message.value())

    def _take(self, key: bytes | None, value: bytes) -> None:
        """Other things lie on the topic, too: what is no lane's view of a destination is passed over."""
        if key is None or not key.decode("utf-8", "replace").rpartition("/")[2].startswith(_KINDS):
            return
        try:
            signal = decode_signal(value)
        except msgspec.DecodeError:
            return  # from a newer release
        if signal.writer != self._lane.identity.writer or signal.at_us < self._began_us:
            self._targets.heard(
                signal
            )  # what this lane itself said before it was started anew counts, its echo does not


def topic_reader(kafka: str, topic: str) -> Consumer:
    """Reads the whole compacted topic, in no group; nothing is ever committed."""
    consumer = Consumer(
        {
            "bootstrap.servers": kafka,
            "group.id": "penstock-gossip-reader",  # the client wants a name
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


def view_of(target: Target) -> View:
    """What is worth telling when it changes. Concurrency in coarse steps: it moves every second while it adapts."""
    allowed = int(target.throttle.allowed).bit_length() if target.throttle.reduced else 0
    return (target.breaker.state, round(target.breaker.until_s, 1), target.suspended, allowed, _tells_slow(target))


PLAIN: Final[View] = ("closed", 0.0, "", 0, False)


def _tells_slow(target: Target) -> bool:
    """Whether this lane says that the destination is slow: an ordered one stays where it is."""
    return target.slowness.is_slow and not target.ordered


def signal_of(target: Target, cell: str, writer: str, now_s: float) -> Signal:
    """The target as a signal; times of the lane's own clock become Unix time."""
    now_us = time.time_ns() // 1_000
    until_s = target.breaker.until_s
    return Signal(
        version=SIGNAL_VERSION,
        cell=cell,
        writer=writer,
        pipe=target.record.pipe,
        destination=target.record.name,
        at_us=now_us,
        breaker=target.breaker.state,
        until_us=now_us + int((until_s - now_s) * 1_000_000) if until_s else 0,
        concurrency=int(target.throttle.allowed),
        slow=_tells_slow(target),
        suspended=target.suspended,
        status=target.last_status,
        reason=target.last_reason,
        in_a_row=target.in_a_row,
        of_version=target.record.version,
    )
