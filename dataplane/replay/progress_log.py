"""The cell's `signals` topic, for replays: their stored progress, and the destinations that are slow now."""

import time
from collections.abc import Iterator
from typing import Any, Final

import msgspec
from confluent_kafka import OFFSET_BEGINNING, KafkaError, KafkaException, TopicPartition

from dataplane.tables.redrives import EARLY_RELEASE_PREFIX, REDRIVE_PREFIX
from dataplane.tables.replays import REPLAY_PREFIX, ReplayProgress, decode_replay_progress
from dataplane.tables.signals import decode_signal, reported_slowness

READ_SIZE: Final = 1_000
READ_S: Final = 0.1  # a read for a whole batch waits as long at the end
READ_WITHIN_S: Final = 30.0
NOT_SIGNALS: Final = (REPLAY_PREFIX, REDRIVE_PREFIX, EARLY_RELEASE_PREFIX)  # keys of other records


def read_progress(consumer: Any, topic: str) -> dict[str, ReplayProgress]:
    """Return the newest progress of each replay. Raises KafkaException if the topic cannot be read to its end.

    consumer: for assigned partitions, which reports the end of a partition
    """
    found: dict[str, ReplayProgress] = {}
    for key, value in _records(consumer, topic):
        _take(found, key, value)
    return found


def read_slow(consumer: Any, topic: str) -> set[tuple[str, str]]:
    """Return the destinations that the slow lane serves, by pipe and name. Raises like `read_progress`."""
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


def _take(found: dict[str, ReplayProgress], key: bytes, value: bytes) -> None:
    """Note a record; the topic has other kinds, with other keys."""
    if not key.startswith(REPLAY_PREFIX.encode()):
        return
    try:
        progress = decode_replay_progress(value)
    except msgspec.DecodeError:
        return  # written by a release that is newer by more than one
    found[progress.replay] = progress
