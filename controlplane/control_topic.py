"""The control topic from the publisher's side: what it holds, read back, and a write that waits for every report.

Whoever publishes compares rows with what this reader sees, never with what it remembers having sent: a publisher
killed after a write and before its commit finds the record there and goes on.
"""

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

from confluent_kafka import OFFSET_BEGINNING, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import OffsetSpec
from msgspec import Struct

from controlplane.kafka import admin_client, producer
from controlplane.kafka import consumer as kafka_consumer
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
    """Reads the whole topic once, then what is new. One thread at a time; it keeps its clients between calls."""

    def __init__(self, kafka: str, topic: str = CONTROL_TOPIC) -> None:
        self._kafka = kafka
        self._admin: Any = None
        self._place = TopicPartition(topic, 0, OFFSET_BEGINNING)
        self._consumer: Any = None
        self._producer: Any = None
        self._next = 0
        self.published: dict[str, Published] = {}

    def refresh(self) -> None:
        """Read up to the end the topic has now. Raises ControlTopicError."""
        try:
            self._read_to_end()
        except KafkaException as exc:
            self.close()
            raise ControlTopicError(f"control topic cannot be read: {exc.args[0].str()}") from exc

    def publish(self, records: Sequence[Record]) -> None:
        """Write `records` in their order, each with its own report. Raises ControlTopicError if one is not stored."""
        writer = self._producer or self._open_producer()
        errors: list[str] = []
        for record in records:
            writer.produce(self._place.topic, encode_record(record), record_key(record), on_delivery=_reporter(errors))
            writer.poll(0)
        unsent = writer.flush(PUBLISH_S + 1)
        if errors or unsent:
            self._producer = None  # it may have failed for good; what it still holds would come too late
            writer.purge()
            raise ControlTopicError(f"{len(errors) + unsent} of {len(records)} records not stored: {errors[:1]}")

    def close(self) -> None:
        """Forget everything; the next refresh starts from the beginning."""
        # The admin client too: after a broker came back it was seen to ask with an outdated leader epoch for good.
        consumer, self._consumer, self._admin = self._consumer, None, None
        self.published, self._next = {}, 0
        if consumer is not None:
            consumer.close()

    def _read_to_end(self) -> None:
        consumer = self._consumer or self._open()
        high = self._end()
        if high < self._next:  # deleted and made anew, shorter than what was read
            self.close()
            consumer = self._open()
        deadline = time.monotonic() + READ_S
        while self._next < high:
            if time.monotonic() > deadline:
                raise ControlTopicError(f"control topic read up to {self._next} of {high} in {READ_S} s")
            if (first := consumer.poll(0.2)) is not None:
                for message in [first, *consumer.consume(1000, 0)]:
                    self._apply(message)

    def _end(self) -> int:
        """Where the topic ends now; asked on a connection of its own, for on the consumer's it waits behind a fetch."""
        place = TopicPartition(self._place.topic, self._place.partition)
        self._admin = self._admin or admin_client(self._kafka)
        future = self._admin.list_offsets({place: OffsetSpec.latest()}, request_timeout=READ_S)[place]
        return int(future.result().offset)

    def _open(self) -> Any:
        consumer = kafka_consumer(
            self._kafka, "penstock.publisher", **{"enable.partition.eof": True, "auto.offset.reset": "earliest"}
        )
        consumer.assign([self._place])
        self._consumer = consumer
        return consumer

    def _open_producer(self) -> Any:
        self._producer = producer(self._kafka, **{"message.timeout.ms": int(PUBLISH_S * 1000)})
        return self._producer

    def _apply(self, message: Any) -> None:
        if error := message.error():
            if error.code() != KafkaError._PARTITION_EOF:
                raise KafkaException(error)
            self._next = max(self._next, message.offset())  # compaction may have removed what stood before the end
            return
        key, offset = message.key().decode(), message.offset()
        self._next = offset + 1
        self.published[key] = Published(int(json.loads(message.value())["version"]), offset)


def _reporter(errors: list[str]) -> Any:
    def report(error: Any, _message: Any) -> None:
        if error is not None:
            errors.append(error.str())

    return report
