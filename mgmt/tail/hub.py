"""Hub of live tails: one thread per process reads the tail topics while there are viewers, and fans copies out."""

import logging
import threading
import time
from collections.abc import Iterable
from functools import cache
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition
from django.conf import settings

from dataplane.kafka_clients import make_consumer
from mgmt.messages.queries.readers import check_read_right, raise_refusal, unreadable
from mgmt.tail.copies import copy_of
from mgmt.tail.viewer import KEPT, TailTopic, TailViewer

log = logging.getLogger(__name__)

# Each viewer occupies a thread of the web server; catalogue.py provides enough of them.
MOST_VIEWERS: Final = 16
_AT_ONCE: Final = 500
_WAIT_S: Final = 0.1
_TIMEOUT_S: Final = 3.0
_RETRY_S: Final = 1.0


class TailCapacityError(Exception):
    """This process has reached its limit of viewers."""


class TailHub:
    """Viewers by topic, and the reader thread. `trouble`: why no copies can arrive; "" if they can."""

    def __init__(self, kafka: str) -> None:
        self._kafka = kafka
        self._feeds: dict[str, TailTopic] = {}
        self._lock = threading.Lock()
        self._reader: threading.Thread | None = None
        self.trouble = ""

    @property
    def viewers(self) -> int:
        """Number of viewers."""
        return sum(len(feed.viewers) for feed in self._feeds.copy().values())

    def join(self, topic: str, viewer: TailViewer) -> None:
        """Add a viewer of a topic until `leave`; start the reader with the first one. Raises TailCapacityError."""
        with self._lock:
            if self.viewers >= MOST_VIEWERS:
                raise TailCapacityError
            self._feeds.setdefault(topic, TailTopic()).join(viewer)
            if self._reader is None:
                self._reader = threading.Thread(target=self._read, name="live-tail", daemon=True)
                self._reader.start()

    def leave(self, topic: str, viewer: TailViewer) -> None:
        """Remove a viewer, and the topic with its last viewer. Safe to repeat."""
        with self._lock:
            feed = self._feeds.get(topic)
            if feed is None or viewer not in feed.viewers:
                return
            feed.viewers.remove(viewer)
            if not feed.viewers:
                del self._feeds[topic]

    def _read(self) -> None:
        with _Client(self._kafka) as client:
            while self._is_wanted():
                try:
                    self._read_until_trouble(client)
                except KafkaException as exc:
                    self.trouble = str(unreadable(exc.args[0]))
                    log.warning("the live tail cannot read: %s", exc.args[0].str())
                    client.reset()
                    time.sleep(_RETRY_S)

    def _is_wanted(self) -> bool:
        """Return True if there are viewers; otherwise the calling thread stops being the reader."""
        with self._lock:
            if not self._feeds:
                self._reader = None
            return bool(self._feeds)

    def _read_until_trouble(self, client: "_Client") -> None:
        """Follow the topics that have viewers. Raises KafkaException if no broker answers or refuses to."""
        while feeds := self._feeds.copy():
            for topic in [topic for topic, feed in client.feeds.items() if feeds.get(topic) is not feed]:
                client.drop(topic)
            for topic in feeds.keys() - client.feeds.keys():
                self._begin(client, topic, feeds[topic])
            self.trouble = ""
            self._add(client.read())

    def _begin(self, client: "_Client", topic: str, feed: TailTopic) -> None:
        first, end = client.ends(topic)
        with self._lock:
            feed.begin(first, end)
        client.follow(topic, feed, first)

    def _add(self, messages: Iterable[Message]) -> None:
        with self._lock:
            for message in messages:
                feed, copy = self._feeds.get(message.topic()), copy_of(message)
                if feed and copy:
                    feed.add(copy)


class _Client:
    """Kafka consumer of the newest copies of several topics. Commits nothing."""

    def __init__(self, kafka: str) -> None:
        self.feeds: dict[str, TailTopic] = {}
        self._are_brokers_down = False
        self._consumer = make_consumer(
            {
                "bootstrap.servers": kafka,
                "group.id": "penstock.tail",  # required by the client; nothing is ever committed
                "enable.auto.commit": False,
                "auto.offset.reset": "latest",
                "fetch.wait.max.ms": 100,
                "queued.max.messages.kbytes": 8 * 1024,
                "error_cb": self._note,
                "log_level": 0,
            }
        )

    def __enter__(self) -> "_Client":
        return self

    def __exit__(self, *_: Any) -> None:
        self._consumer.close()

    def ends(self, topic: str) -> tuple[int, int]:
        """Return the first offset to read, at most KEPT from the end, and the end offset."""
        try:
            low, high = self._consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=_TIMEOUT_S)
        except KafkaException:
            check_read_right(self._consumer, topic)
            raise
        return max(low, high - KEPT), high

    def follow(self, topic: str, feed: TailTopic, first: int) -> None:
        """Start to read a topic for this feed from offset `first`."""
        self._consumer.incremental_assign([TopicPartition(topic, 0, first)])
        self.feeds[topic] = feed

    def drop(self, topic: str) -> None:
        """Stop reading a topic."""
        self._consumer.incremental_unassign([TopicPartition(topic, 0)])
        del self.feeds[topic]

    def reset(self) -> None:
        """Stop reading all topics; the hub starts them again once a broker responds. The consumer reconnects itself."""
        self._consumer.unassign()
        self.feeds.clear()
        self._are_brokers_down = False

    def read(self) -> list[Message]:
        """Return new records after a wait of at most 0.1 s.

        Raises KafkaException if all brokers are down, or if this user may not read a topic.
        """
        found = self._consumer.consume(_AT_ONCE, _WAIT_S)
        if self._are_brokers_down:
            raise KafkaException(KafkaError(KafkaError._ALL_BROKERS_DOWN))
        raise_refusal(found)
        return [message for message in found if message.error() is None]

    def _note(self, error: KafkaError) -> None:
        self._are_brokers_down = self._are_brokers_down or error.code() == KafkaError._ALL_BROKERS_DOWN


@cache
def hub() -> TailHub:
    """Return this process's hub."""
    return TailHub(settings.PENSTOCK_KAFKA)
