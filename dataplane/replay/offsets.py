"""Resolution of a run's range of ingest times to offsets of the ingest topic."""

from typing import Any, Final, NamedTuple

import msgspec
from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition

from dataplane.ledger.meta import read_meta
from dataplane.replay.ranges import OffsetRange
from dataplane.tables.records import TopicRecord

MARGIN_US: Final = 60_000_000  # clocks of ingest and of brokers differ; events are selected by their own time
ASK_S: Final = 10.0
FIRST_S: Final = 10.0


class ResolvedRange(NamedTuple):
    """Offsets to read, and the ingest time (microseconds since 1970) before which events may have been deleted.

    The time is 0 if all events of the range are retained.
    """

    ranges: list[OffsetRange]
    retained_since_us: int


def resolve(consumer: Any, topic: TopicRecord, since_us: int, until_us: int) -> ResolvedRange:
    """Return the offsets that may have events of [since_us, until_us), within the watermarks. Raises KafkaException.

    consumer: for assigned partitions
    """
    numbers = range(topic.partitions)
    bounds = {number: watermarks(consumer, topic.name, number) for number in numbers}
    firsts = offsets_at(consumer, topic, since_us - MARGIN_US)
    ends = offsets_at(consumer, topic, until_us + MARGIN_US)
    ranges = []
    cut: list[int] = []  # partitions from whose beginning events are needed, after retention has deleted some
    for number, (low, high) in bounds.items():
        first = max(low, high if firsts[number] < 0 else firsts[number])
        end = min(high, high if ends[number] < 0 else ends[number])
        ranges.append(OffsetRange((topic.name, number), first, max(first, end)))
        if 0 < low == first:
            cut.append(number)
    starts = [
        _first_time_us(consumer, topic.name, number, bounds[number][0])
        for number in cut
        if bounds[number][1] > bounds[number][0]
    ]
    if cut and not starts and all(low == high for low, high in bounds.values()):
        return ResolvedRange(ranges, until_us)  # nothing is retained
    latest_us = min(max(starts, default=0), until_us)
    return ResolvedRange(ranges, latest_us if latest_us > since_us else 0)


def watermarks(consumer: Any, topic: str, number: int) -> tuple[int, int]:
    """Return the first retained offset of a partition and the one after its last. Raises KafkaException."""
    bounds = consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=ASK_S)
    if bounds is None:
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
    return int(bounds[0]), int(bounds[1])


def offsets_at(consumer: Any, topic: TopicRecord, time_us: int) -> dict[int, int]:
    """Return by partition the offset of the first record stored at a time or later; below 0 if there is none.

    Raises KafkaException.
    """
    asked = [TopicPartition(topic.name, number, max(0, time_us // 1_000)) for number in range(topic.partitions)]
    found = {}
    for answer in consumer.offsets_for_times(asked, timeout=ASK_S):
        if answer.error is not None:
            raise KafkaException(answer.error)
        found[answer.partition] = int(answer.offset)
    return found


def _first_time_us(consumer: Any, topic: str, number: int, low: int) -> int:
    """Return the ingest time of the first retained event of a partition. Raises KafkaException."""
    message = record_at(consumer, topic, number, low)
    try:
        return read_meta(message.headers() or []).ingest_time_us
    except (KeyError, msgspec.DecodeError):
        return int(message.timestamp()[1]) * 1_000


def record_at(consumer: Any, topic: str, number: int, offset: int) -> Message:
    """Return the first record of a partition from an offset on. Raises KafkaException if it cannot be read."""
    consumer.assign([TopicPartition(topic, number, offset)])
    found = consumer.consume(1, FIRST_S)
    consumer.assign([])  # do not fetch on in the background
    for message in found:
        if message.error() is None:
            return message
    raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
