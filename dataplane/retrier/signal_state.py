"""State of the signals topic: breakers of destinations, and the progress of redrives and early releases.

Every retrier lane reads the whole topic. A missing signal costs an unnecessary pass through transmit, never a message.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from confluent_kafka import OFFSET_BEGINNING, KafkaError, TopicPartition

from dataplane.kafka_clients import make_consumer
from dataplane.names import PartitionKey
from dataplane.retrier.release_pacer import DestinationKey
from dataplane.tables.redrives import (
    EARLY_RELEASE_PREFIX,
    REDRIVE_PREFIX,
    EarlyReleaseProgress,
    RedriveProgress,
    decode_early_release,
    decode_progress,
    format_place,
)
from dataplane.tables.replays import REPLAY_PREFIX
from dataplane.tables.shadows import SHADOW_PREFIX
from dataplane.tables.signals import DestinationSignal, decode_signal

READ_LIMIT: Final = 1_000
SHUT_US: Final = 120_000_000  # a breaker opens for a minute: a longer time means that clocks differ
RELEASING_US: Final = 30_000_000  # a release without a report for so long may have ended with its lane
EXPECTED_US: Final = 10_000_000  # within this time after a recovery, its early release is expected to be reported
RECENT_US: Final = (
    600_000_000  # a recovery without an early release (the lane was down) still starts one within this time
)


class SignalState:
    """The pure half: applies records in their order and answers queries about the result."""

    def __init__(self) -> None:
        self.progress: dict[str, RedriveProgress] = {}
        self.early_releases: dict[DestinationKey, EarlyReleaseProgress] = {}
        self._views: dict[DestinationKey, DestinationSignal] = {}  # the newest signal of any lane
        self._recovered: dict[DestinationKey, int] = {}  # by destination: the time of the signal
        self._closed_us: dict[DestinationKey, int] = {}  # by destination: when its breaker closed
        self._released = False

    def apply(self, key: str, value: bytes, now_us: int) -> None:
        """Apply one record; ignore one that a newer release of Penstock wrote."""
        if key.startswith((REPLAY_PREFIX, SHADOW_PREFIX)):
            return  # progress of a run that concerns no retry
        try:
            if key.startswith(REDRIVE_PREFIX):
                progress = decode_progress(value)
                self.progress[progress.move] = progress
            elif key.startswith(EARLY_RELEASE_PREFIX):
                self.note_early_release(decode_early_release(value))
            else:
                self._apply_signal(decode_signal(value), now_us)
        except msgspec.DecodeError:
            return

    def note_early_release(self, progress: EarlyReleaseProgress) -> None:
        """Apply a report. It never reduces what is known as returned: this lane notes its own before they are read."""
        name = DestinationKey(progress.pipe, progress.destination)
        before = self.early_releases.get(name)
        reached = highest(before.reached if before else {}, progress.reached)
        self.early_releases[name] = msgspec.structs.replace(progress, reached=reached)
        self._released = True

    def _apply_signal(self, signal: DestinationSignal, now_us: int) -> None:
        """Apply a destination's signal: it has recovered if the breaker is closed now and was not, or was unknown.

        The end of an opening is limited here, once: a limit at each query would move on with the clock.
        """
        if not signal.destination:
            return  # of a whole pipe: none of its messages are in the tiers
        name = DestinationKey(signal.pipe, signal.destination)
        before = self._views.get(name)
        if before is not None and before.at_us > signal.at_us:
            return
        self._views[name] = msgspec.structs.replace(signal, until_us=min(signal.until_us, now_us + SHUT_US))
        if signal.breaker != "closed":
            self._recovered.pop(name, None)
            self._closed_us.pop(name, None)
        elif before is None or before.breaker != "closed":
            release = self.early_releases.get(name)
            if signal.at_us > now_us - RECENT_US or (release is not None and release.running):
                self._recovered[name] = signal.at_us
                self._closed_us[name] = min(signal.at_us, now_us)

    def take_recovered(self) -> set[DestinationKey]:
        """Return and clear the recovered destinations without a complete early release since their recovery."""
        recovered = {name for name, at_us in self._recovered.items() if not self._is_answered(name, at_us)}
        self._recovered.clear()
        return recovered

    def _is_answered(self, name: DestinationKey, at_us: int) -> bool:
        release = self.early_releases.get(name)
        return release is not None and release.at_us >= at_us and not release.running

    def take_released(self) -> bool:
        """Return True if an early release was reported since the last call."""
        released, self._released = self._released, False
        return released

    def is_releasing(self, name: DestinationKey, now_us: int) -> bool:
        """Return True if an early release of this destination is running and was reported within RELEASING_US."""
        release = self.early_releases.get(name)
        return release is not None and release.running and now_us - release.at_us < RELEASING_US

    def will_be_returned(self, name: DestinationKey, place: PartitionKey, offset: int, now_us: int) -> bool:
        """Return True if the running early release returns this message of the destination, and has not yet."""
        if not self.is_releasing(name, now_us):
            return False
        release, key = self.early_releases[name], format_place(place)
        return release.reached.get(key, 0) <= offset < release.ends.get(key, 0)

    def expects_release(self, name: DestinationKey, now_us: int) -> bool:
        """Return True if the breaker closed within EXPECTED_US, and no early release has been reported since."""
        closed_us = self._closed_us.get(name)
        if closed_us is None:
            return False
        if not 0 <= now_us - closed_us < EXPECTED_US or self.was_released_since(name, closed_us):
            del self._closed_us[name]
            return False
        return True

    def was_released_since(self, name: DestinationKey, at_us: int) -> bool:
        """Return True if an early release of this destination was reported at or after `at_us`."""
        release = self.early_releases.get(name)
        return release is not None and release.at_us >= at_us

    def shut_until_us(self, name: DestinationKey, version: int) -> int | None:
        """Return the wall time until which the breaker blocks a destination; None while it is closed.

        version: of the destination's control record now; signals under an older version no longer count
        """
        view = self._views.get(name)
        if view is None or view.breaker == "closed" or view.of_version < version:
            return None
        return view.until_us

    def was_returned_early(self, name: DestinationKey, place: PartitionKey, offset: int) -> bool:
        """Return True if an early release has already returned this message of the destination."""
        release = self.early_releases.get(name)
        return release is not None and offset < release.reached.get(format_place(place), 0)


class SignalReader:
    """Reader of the signals topic, which keeps a SignalState current.

    at_end: the reader has reached the end of the topic once
    """

    def __init__(self, kafka: str, topic: str) -> None:
        self.state = SignalState()
        self.at_end = False
        self._consumer: Any = make_consumer(
            {
                "bootstrap.servers": kafka,
                "group.id": "penstock-signals",  # the client requires a group; nothing is ever committed
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "auto.offset.reset": "earliest",
                "enable.partition.eof": True,
                "fetch.wait.max.ms": 1_000,
                "log_level": 3,
            }
        )
        self._consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])

    def refresh(self, now_us: int) -> None:
        """Apply the new records, without waiting."""
        for message in self._consumer.consume(READ_LIMIT, 0):
            error = message.error()
            if error is None:
                self._apply(message, now_us)
            elif error.code() == KafkaError._PARTITION_EOF:
                self.at_end = True

    def close(self) -> None:
        """Close the Kafka consumer."""
        self._consumer.close()

    def _apply(self, message: Any, now_us: int) -> None:
        key, value = message.key(), message.value()
        if key is not None and value is not None:
            self.state.apply(key.decode("utf-8", "replace"), value, now_us)


def highest(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    """Return the higher of both offsets for each partition."""
    return {place: max(one.get(place, 0), other.get(place, 0)) for place in one.keys() | other.keys()}
