"""The control topic from the publisher's side: what it holds, read back, and a write that waits for every report.

Whoever publishes compares rows with what this reader sees, never with what it remembers having sent: a publisher
killed after a write and before its commit finds the record there and goes on.
"""

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

from confluent_kafka import OFFSET_BEGINNING, KafkaError, KafkaException, TopicPartition
from msgspec import Struct

from controlplane.kafka import NotStoredError, consumer, kafka_clients
from dataplane.names import CONTROL_TOPIC
from dataplane.tables.records import Record, encode_record, record_key

READ_S: Final = 10.0
PUBLISH_S: Final = 10.0


class ControlTopicError(Exception):
    """The control topic could not be read or written in time; the next tick tries again."""


class Published(Struct, frozen=True):
    """The newest record of a key: compaction keeps this one, whether or not its version is the highest."""

    version: int
    offset: int


def missing_records(wanted: Mapping[str, int], published: Mapping[str, Published]) -> list[str]:
    """Keys whose newest record is absent or older than the row; pure.

    A newer record than the row (rows restored from a backup) is left alone: readers would ignore an older one.
    """
    return [key for key, version in wanted.items() if key not in published or published[key].version < version]


def end_of(keys: Sequence[str], wanted: Mapping[str, int], published: Mapping[str, Published]) -> int | None:
    """The offset just after the newest record of all `keys`, or None while one of them is not published; pure."""
    held = [published[key] for key in keys if key in published and published[key].version >= wanted[key]]
    if not keys or len(held) < len(keys):
        return None
    return max(record.offset for record in held) + 1


class ControlTopic:
    """Reads the whole topic once, then what is new. One thread at a time."""

    def __init__(self, kafka: str, topic: str = CONTROL_TOPIC) -> None:
        self._kafka = kafka
        self._clients = kafka_clients(kafka)
        self._place = (topic, 0)
        self._consumer: Any = None
        self._is_assigned = False
        self._next = 0
        self.published: dict[str, Published] = {}

    def refresh(self) -> None:
        """Read up to the end the topic has now; after an error from its beginning. Raises ControlTopicError."""
        try:
            self._read_to_end()
        except KafkaException as exc:
            self._forget()
            raise ControlTopicError(f"control topic cannot be read: {exc.args[0].str()}") from exc

    def publish(self, records: Sequence[Record]) -> None:
        """Write `records` in their order, each with its own report. Raises ControlTopicError if one is not stored."""
        encoded = [(record_key(record), encode_record(record)) for record in records]
        try:
            self._clients.store("control", self._place[0], encoded, timeout_s=PUBLISH_S)
        except NotStoredError as exc:
            raise ControlTopicError(str(exc)) from exc

    def close(self) -> None:
        """Close the consumer; the next refresh makes a new one and starts from the beginning."""
        self._forget()
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None

    def _forget(self) -> None:
        self.published, self._next, self._is_assigned = {}, 0, False

    def _read_to_end(self) -> None:
        # Asked by the admin client: on the consumer's own connection the request would wait behind a fetch.
        high = self._clients.ends([self._place], READ_S)[self._place]
        if high < self._next:  # deleted and created again, shorter than what was read
            self._forget()
        reader = self._assigned()
        deadline = time.monotonic() + READ_S
        while self._next < high:
            if time.monotonic() > deadline:
                raise ControlTopicError(f"control topic read up to {self._next} of {high} in {READ_S} s")
            if (first := reader.poll(0.2)) is not None:
                for message in [first, *reader.consume(1000, 0)]:
                    self._apply(message)

    def _assigned(self) -> Any:
        """Return the consumer, which reads on, or from the beginning if what was read is forgotten."""
        if self._consumer is None:
            settings = {"enable.partition.eof": True, "auto.offset.reset": "earliest"}
            self._consumer = consumer(self._kafka, "penstock.publisher", **settings)
        if not self._is_assigned:
            self._consumer.assign([TopicPartition(*self._place, OFFSET_BEGINNING)])
            self._is_assigned = True
        return self._consumer

    def _apply(self, message: Any) -> None:
        if error := message.error():
            if error.code() != KafkaError._PARTITION_EOF:
                raise KafkaException(error)
            self._next = max(self._next, message.offset())  # compaction may have removed what stood before the end
            return
        key, offset = message.key().decode(), message.offset()
        self._next = offset + 1
        self.published[key] = Published(int(json.loads(message.value())["version"]), offset)
