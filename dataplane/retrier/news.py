"""What the signals topic says: breakers of destinations, how far moves have come, what was released ahead.

Every retrier lane reads it whole. What is not known yet costs a needless pass through transmit, never a message.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

from dataplane.retrier.pace import Name
from dataplane.tables.moves import (
    AHEAD_PREFIX,
    MOVE_PREFIX,
    Ahead,
    MoveProgress,
    Place,
    decode_ahead,
    decode_progress,
    format_place,
)
from dataplane.tables.signals import Signal, decode_signal

READ_LIMIT: Final = 1_000
RELEASING_US: Final = 30_000_000  # a release that has told nothing for so long may have ended with its lane
RECENT_US: Final = 600_000_000  # a recovery that nobody answered (the lane was away) is answered so long afterwards


class News:
    """The pure half: apply records in their order, ask what follows."""

    def __init__(self) -> None:
        self.progress: dict[str, MoveProgress] = {}
        self.ahead: dict[Name, Ahead] = {}
        self._views: dict[Name, Signal] = {}  # the newest of any lane
        self._recovered: dict[Name, int] = {}  # since when
        self._released = False

    def apply(self, key: str, value: bytes, now_us: int) -> None:
        """Take one record in; one of a newer release is passed over."""
        try:
            if key.startswith(MOVE_PREFIX):
                progress = decode_progress(value)
                self.progress[progress.move] = progress
            elif key.startswith(AHEAD_PREFIX):
                ahead = decode_ahead(value)
                self.ahead[Name(ahead.pipe, ahead.destination)] = ahead
                self._released = True
            else:
                self._hear(decode_signal(value), now_us)
        except msgspec.DecodeError:
            return

    def _hear(self, signal: Signal, now_us: int) -> None:
        """A destination has recovered when its breaker is closed and was not, or was last heard of before our time."""
        if not signal.destination:
            return  # of a pipe as a whole: nothing waits for it in the tiers
        name = Name(signal.pipe, signal.destination)
        before = self._views.get(name)
        if before is not None and before.at_us > signal.at_us:
            return
        self._views[name] = signal
        if signal.breaker != "closed":
            self._recovered.pop(name, None)
        elif before is None or before.breaker != "closed":
            ahead = self.ahead.get(name)
            if signal.at_us > now_us - RECENT_US or (ahead is not None and ahead.running):
                self._recovered[name] = signal.at_us

    def take_recovered(self) -> set[Name]:
        """Destinations that are well again and whose waiting messages nobody has released since, or not to the end."""
        recovered = {name for name, at_us in self._recovered.items() if not self._is_answered(name, at_us)}
        self._recovered.clear()
        return recovered

    def _is_answered(self, name: Name, at_us: int) -> bool:
        ahead = self.ahead.get(name)
        return ahead is not None and ahead.at_us >= at_us and not ahead.running

    def take_released(self) -> bool:
        """Whether something was released ahead since the last call."""
        released, self._released = self._released, False
        return released

    def is_releasing(self, name: Name, now_us: int) -> bool:
        """Whether an early release of this destination is under way, by what was told lately."""
        ahead = self.ahead.get(name)
        return ahead is not None and ahead.running and now_us - ahead.at_us < RELEASING_US

    def was_released_since(self, name: Name, at_us: int) -> bool:
        """Whether an early release of this destination was told of after this moment."""
        ahead = self.ahead.get(name)
        return ahead is not None and ahead.at_us >= at_us

    def shut_until_us(self, name: Name, version: int) -> int | None:
        """Until when a destination is not to be sent to; None while its breaker is closed.

        `version` is that of its record now: what was seen under an older one counts no more.
        """
        view = self._views.get(name)
        if view is None or view.breaker == "closed" or view.of_version < version:
            return None
        return view.until_us

    def is_ahead(self, name: Name, place: Place, offset: int) -> bool:
        """Whether this message of the destination was passed on before its time."""
        ahead = self.ahead.get(name)
        return ahead is not None and offset < ahead.reached.get(format_place(place), 0)


class NewsReader:
    """Keeps News up to date from Kafka. `at_end`: all that was there at the beginning has been read."""

    def __init__(self, kafka: str, topic: str) -> None:
        self.news = News()
        self.at_end = False
        self._consumer: Any = Consumer(
            {
                "bootstrap.servers": kafka,
                "group.id": "penstock-news",  # the client wants a name; nothing is ever committed
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
        """Take in what has come, without waiting."""
        for message in self._consumer.consume(READ_LIMIT, 0):
            error = message.error()
            if error is None:
                self._take(message, now_us)
            elif error.code() == KafkaError._PARTITION_EOF:
                self.at_end = True

    def close(self) -> None:
        """Leave the topic."""
        self._consumer.close()

    def _take(self, message: Any, now_us: int) -> None:
        key, value = message.key(), message.value()
        if key is not None and value is not None:
            self.news.apply(key.decode("utf-8", "replace"), value, now_us)


def highest(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    """The farther of two places reached, for each."""
    return {place: max(one.get(place, 0), other.get(place, 0)) for place in one.keys() | other.keys()}
