"""The control topic as its publisher uses it: the records read back, and a write that waits for every delivery report.

The publisher compares rows with the records that this reader finds, never with its memory of what it sent: a publisher
killed after a write and before its commit finds the record in the topic and continues.
"""

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

from confluent_kafka import OFFSET_BEGINNING, KafkaError, KafkaException, TopicPartition
from msgspec import Struct

from controlplane.kafka import RecordNotStoredError, consumer, kafka_clients
from dataplane.names import CONTROL_TOPIC
from dataplane.tables.records import Record, encode_record, record_key

READ_S: Final = 10.0
PUBLISH_S: Final = 10.0
PARTITION: Final = (CONTROL_TOPIC, 0)


class ControlTopicError(Exception):
    """The control topic could not be read or written in time; the next tick retries."""


class PublishedRecord(Struct, frozen=True):
    """Newest record of a key: compaction keeps this one even if its version is not the highest."""

    version: int
    offset: int


def missing_records(wanted: Mapping[str, int], published: Mapping[str, PublishedRecord]) -> list[str]:
    """Return the keys whose newest record is absent or older than the row; pure.

    A record newer than its row (rows restored from a backup) is left alone: readers would ignore an older one.
    """
    return [key for key, version in wanted.items() if key not in published or published[key].version < version]


def end_of(keys: Sequence[str], wanted: Mapping[str, int], published: Mapping[str, PublishedRecord]) -> int | None:
    """Return the offset after the newest record of all `keys`, or None while one of them is not published; pure."""
    current = [published[key] for key in keys if key in published and published[key].version >= wanted[key]]
    if not keys or len(current) < len(keys):
        return None
    return max(record.offset for record in current) + 1


class ControlTopic:
    """Reader and publisher of the control topic: reads all of it once, then new records. For one thread at a time."""

    def __init__(self, kafka: str) -> None:
        self._kafka = kafka
        self._clients = kafka_clients(kafka)
        self._consumer: Any = None
        self._is_assigned = False
        self._next = 0
        self.published: dict[str, PublishedRecord] = {}

    def refresh(self) -> None:
        """Read up to the topic's present end; after an error, from its beginning. Raises ControlTopicError."""
        try:
            self._read_to_end()
        except KafkaException as exc:
            self._forget()
            raise ControlTopicError(f"control topic cannot be read: {exc.args[0].str()}") from exc

    def publish(self, records: Sequence[Record]) -> None:
        """Write `records` in order and wait for the delivery reports. Raises ControlTopicError if one is not stored."""
        encoded = [(record_key(record), encode_record(record)) for record in records]
        try:
            self._clients.store("control", CONTROL_TOPIC, encoded, timeout_s=PUBLISH_S)
        except RecordNotStoredError as exc:
            raise ControlTopicError(str(exc)) from exc

    def close(self) -> None:
        """Close the consumer; the next refresh creates a new one and reads from the beginning."""
        self._forget()
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None

    def _forget(self) -> None:
        self.published, self._next, self._is_assigned = {}, 0, False

    def _read_to_end(self) -> None:
        # Another client asks for the end: on this consumer's own connection the request would wait behind a fetch.
        high = self._clients.ends([PARTITION], READ_S)[PARTITION]
        if high < self._next:  # the topic was deleted and recreated, and is shorter than the part already read
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
        """Return the consumer, which continues, or starts from the beginning if its progress was discarded."""
        if self._consumer is None:
            settings = {"enable.partition.eof": True, "auto.offset.reset": "earliest"}
            self._consumer = consumer(self._kafka, "penstock.publisher", **settings)
        if not self._is_assigned:
            self._consumer.assign([TopicPartition(*PARTITION, OFFSET_BEGINNING)])
            self._is_assigned = True
        return self._consumer

    def _apply(self, message: Any) -> None:
        if error := message.error():
            if error.code() != KafkaError._PARTITION_EOF:
                raise KafkaException(error)
            self._next = max(self._next, message.offset())  # compaction may have removed the records before the end
            return
        key, offset = message.key().decode(), message.offset()
        self._next = offset + 1
        self.published[key] = PublishedRecord(int(json.loads(message.value())["version"]), offset)
