"""Progress of replays on the cell's `signals` topic: read the newest records at the start."""

import time
from typing import Any, Final

import msgspec
from confluent_kafka import OFFSET_BEGINNING, KafkaError, KafkaException, TopicPartition

from dataplane.tables.replays import REPLAY_PREFIX, ReplayProgress, decode_replay_progress

READ_SIZE: Final = 1_000
READ_WITHIN_S: Final = 30.0


def read_progress(consumer: Any, topic: str) -> dict[str, ReplayProgress]:
    """Return the newest progress of each replay. Raises KafkaException if the topic cannot be read to its end.

    consumer: for assigned partitions, which reports the end of a partition
    """
    found: dict[str, ReplayProgress] = {}
    deadline_s = time.monotonic() + READ_WITHIN_S
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    while time.monotonic() < deadline_s:
        for message in consumer.consume(READ_SIZE, 0.5):
            if message.error() is None:
                _take(found, message.key(), message.value())
            elif message.error().code() == KafkaError._PARTITION_EOF:
                consumer.assign([])  # do not fetch on in the background
                return found
            else:
                raise KafkaException(message.error())
    raise KafkaException(KafkaError(KafkaError._TIMED_OUT))


def _take(found: dict[str, ReplayProgress], key: bytes | None, value: bytes | None) -> None:
    """Note a record; the topic has other kinds, with other keys."""
    if key is None or not key.startswith(REPLAY_PREFIX.encode()) or value is None:
        return
    try:
        progress = decode_replay_progress(value)
    except msgspec.DecodeError:
        return  # written by a release that is newer by more than one
    found[progress.replay] = progress
