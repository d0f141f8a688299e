"""Progress of batch runs (replays, shadow runs) on the cell's `signals` topic: read the newest records at the start."""

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, TypeVar

import msgspec
from confluent_kafka import OFFSET_BEGINNING, KafkaError, KafkaException, TopicPartition

from dataplane.tables.replays import REPLAY_PREFIX, ReplayProgress, decode_replay_progress
from dataplane.tables.shadows import SHADOW_PREFIX, ShadowProgress, decode_shadow_progress

READ_SIZE: Final = 1_000
READ_WITHIN_S: Final = 30.0
P = TypeVar("P")


def read_progress(consumer: Any, topic: str) -> dict[str, ReplayProgress]:
    """Return the newest progress of each replay (see `newest_records`)."""
    return newest_records(consumer, topic, REPLAY_PREFIX, decode_replay_progress)


def read_shadow_progress(consumer: Any, topic: str) -> dict[str, ShadowProgress]:
    """Return the newest progress of each shadow run (see `newest_records`)."""
    return newest_records(consumer, topic, SHADOW_PREFIX, decode_shadow_progress)


def newest_records(consumer: Any, topic: str, prefix: str, decode: Callable[[bytes], P]) -> dict[str, P]:
    """Return the newest record of each key with a prefix, by the rest of the key.

    consumer: for assigned partitions, which reports the end of a partition
    decode:   raises msgspec.DecodeError for a record of a release that is newer by more than one; it is skipped

    Raises KafkaException if the topic cannot be read to its end.
    """
    found: dict[str, P] = {}
    deadline_s = time.monotonic() + READ_WITHIN_S
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    while time.monotonic() < deadline_s:
        for message in consumer.consume(READ_SIZE, 0.5):
            if message.error() is None:
                key, value = message.key(), message.value()
                if key is not None and value is not None and key.startswith(prefix.encode()):
                    with suppress(msgspec.DecodeError):
                        found[key.decode().removeprefix(prefix)] = decode(value)
            elif message.error().code() == KafkaError._PARTITION_EOF:
                consumer.assign([])  # do not fetch on in the background
                return found
            else:
                raise KafkaException(message.error())
    raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
