"""The cell's `signals` topic, for batch runs: the stored progress of replays and shadow runs, and slow destinations."""

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Final, TypeVar

import msgspec
from confluent_kafka import OFFSET_BEGINNING, KafkaError, KafkaException, TopicPartition

from dataplane.tables.redrives import EARLY_RELEASE_PREFIX, REDRIVE_PREFIX
from dataplane.tables.replays import REPLAY_PREFIX, ReplayProgress, decode_replay_progress
from dataplane.tables.shadows import SHADOW_PREFIX, ShadowProgress, decode_shadow_progress
from dataplane.tables.signals import decode_signal, reported_slowness

READ_SIZE: Final = 1_000
READ_S: Final = 0.1  # a read for a whole batch waits as long at the end
READ_WITHIN_S: Final = 30.0
# Keys of other records than signals.
NOT_SIGNALS: Final = (REPLAY_PREFIX, SHADOW_PREFIX, REDRIVE_PREFIX, EARLY_RELEASE_PREFIX)
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
    for key, value in _records(consumer, topic):
        if key.startswith(prefix.encode()):
            with suppress(msgspec.DecodeError):
                found[key.decode().removeprefix(prefix)] = decode(value)
    return found


def read_slow(consumer: Any, topic: str) -> set[tuple[str, str]]:
    """Return the destinations that the slow lane serves, by pipe and name. Raises like `newest_records`."""
    newest: dict[tuple[str, str], tuple[int, bool]] = {}
    for key, value in _records(consumer, topic):
        if any(key.startswith(prefix.encode()) for prefix in NOT_SIGNALS):
            continue
        try:
            signal = decode_signal(value)
        except msgspec.DecodeError:
            continue  # written by a release that is newer by more than one
        is_slow, name = reported_slowness(signal), (signal.pipe, signal.destination)
        if is_slow is not None and signal.at_us > newest.get(name, (0, False))[0]:
            newest[name] = (signal.at_us, is_slow)
    return {name for name, (_, is_slow) in newest.items() if is_slow}


def _records(consumer: Any, topic: str) -> Iterator[tuple[bytes, bytes]]:
    """Yield key and value of each record up to the end of the topic, except tombstones. Raises KafkaException."""
    deadline_s = time.monotonic() + READ_WITHIN_S
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    while time.monotonic() < deadline_s:
        for message in consumer.consume(READ_SIZE, READ_S):
            if message.error() is None:
                if message.key() is not None and message.value() is not None:
                    yield message.key(), message.value()
            elif message.error().code() == KafkaError._PARTITION_EOF:
                consumer.assign([])  # do not fetch on in the background
                return
            else:
                raise KafkaException(message.error())
    raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
