"""Reads of stored messages from Kafka, by offset or by time, for display. Reads go directly to the brokers."""

import time
from collections import deque
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import msgspec
from confluent_kafka import OFFSET_BEGINNING, KafkaError, Message, TopicPartition

from dataplane.ledger.deadletter import original_of
from dataplane.ledger.meta import MessageMeta, read_meta
from mgmt.messages.queries.readers import (
    BrokersUnavailableError,
    RecordReader,
    RecordUnavailableError,
    check_read_right,
    reading,
)

__all__ = [
    "ForeignRecordError",
    "RecordUnavailableError",
    "StoredRecord",
    "messages_since",
    "newest_messages",
    "newest_of_key",
    "read_record",
    "read_records",
    "read_within",
    "records_since",
]

READ_S: Final = 3.0
SEARCH_S: Final = 0.8
SHOWN_BYTES: Final = 64 * 1024
FAR: Final = 500  # records that are read and dropped rather than skipped, as a skip costs a round trip


class ForeignRecordError(RecordUnavailableError):
    """The record at that offset belongs to a pipe that was not requested: tenants share topics."""


@dataclass(frozen=True)
class StoredRecord:
    """Stored message: its envelope, its other headers, the beginning of its body, and the broker's time."""

    meta: MessageMeta
    headers: tuple[tuple[str, str], ...]
    body: bytes
    body_bytes: int
    stored_at: datetime | None = None
    partition: int = 0
    offset: int = 0
    is_reference: bool = False  # a dead letter without its message, which was too large to copy


def read_record(
    topic: str, partition: int, offset: int, *, pipes: Container[str], most_bytes: int = SHOWN_BYTES
) -> StoredRecord:
    """Read the record at an offset, with up to `most_bytes` of its body, if it belongs to one of these pipes.

    Waits at most READ_S. Raises ForeignRecordError for another pipe's record, RecordUnavailableError if the record
    cannot be read.
    """
    with reading("error") as reader:
        reader.client.assign([TopicPartition(topic, partition, offset)])
        record = _stored(_first(reader, offset), most_bytes)
    if record.meta.pipe not in pipes:
        raise ForeignRecordError("the position belongs to another pipe's message")
    return record


def read_records(
    topic: str, offsets: Mapping[int, Iterable[int]], *, pipes: Container[str], most_bytes: int = SHOWN_BYTES
) -> list[StoredRecord]:
    """Read the records at these offsets by partition, as `read_record` reads one, in no particular order.

    Records of other pipes and records that no longer exist are left out, as are those that were not read within READ_S.
    Raises RecordUnavailableError if nothing could be read in that time.
    """
    found, due = read_within(topic, offsets, pipes=pipes, most_bytes=most_bytes, wait_s=READ_S)
    if due and not found:
        raise BrokersUnavailableError
    return found


def read_within(
    topic: str, offsets: Mapping[int, Iterable[int]], *, pipes: Container[str], most_bytes: int, wait_s: float
) -> tuple[list[StoredRecord], Mapping[int, Collection[int]]]:
    """Return the records at these offsets by partition, as `read_records`, and the offsets that were not read in time.

    Raises BrokersUnavailableError, ReadRightMissingError.
    """
    due = {partition: deque(sorted(set(some))) for partition, some in offsets.items() if some}
    found: list[StoredRecord] = []
    deadline, stopped = time.monotonic() + wait_s, True
    with reading("error") as reader:
        while due and (left_s := deadline - time.monotonic()) > 0:
            if stopped:
                reader.client.assign([TopicPartition(topic, partition, some[0]) for partition, some in due.items()])
            stopped = False
            for message in reader.read(left_s):
                wanted = due.get(message.partition())
                if wanted is None:
                    continue
                if message.error() is not None:
                    stopped |= _passed_over(message, wanted)
                elif message.offset() >= wanted[0]:
                    found += _taken(message, wanted, pipes, most_bytes)
                    if wanted and wanted[0] - message.offset() > FAR:
                        reader.client.seek(TopicPartition(topic, message.partition(), wanted[0]))
                if not wanted:
                    del due[message.partition()]
                    stopped = True
        if due and not found:
            check_read_right(reader.client, topic)
    return found, due


def _passed_over(message: Message, wanted: deque[int]) -> bool:
    """Drop the wanted offsets that do not exist; return True if the partition is read no further."""
    code = message.error().code()
    if code == KafkaError._PARTITION_EOF:
        wanted.clear()
    elif code in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):
        wanted.popleft()
    else:
        return False
    return True


def _taken(message: Message, wanted: deque[int], pipes: Container[str], most_bytes: int) -> list[StoredRecord]:
    """Return the record if its offset is wanted and it is of these pipes, and drop the offsets up to it."""
    is_wanted = message.offset() == wanted[0]
    while wanted and wanted[0] <= message.offset():
        wanted.popleft()
    if not is_wanted:
        return []
    try:
        record = _stored(message, most_bytes)
    except RecordUnavailableError:
        return []
    return [record] if record.meta.pipe in pipes else []


def records_since(
    topic: str, partitions: Sequence[int], since: datetime, is_wanted: Callable[[Message], bool], *, most: int = 1
) -> list[StoredRecord]:
    """Return the first `most` wanted records of these partitions that the broker stored at `since` or later.

    Returns fewer if the search within SEARCH_S finds no more. Raises RecordUnavailableError.
    """
    found = []
    for message in messages_since(topic, partitions, since):
        if is_wanted(message):
            found.append(_stored(message, SHOWN_BYTES))
            if len(found) == most:
                break
    return found


def messages_since(topic: str, partitions: Sequence[int], since: datetime) -> Iterator[Message]:
    """Yield the messages of these partitions from `since` on, within SEARCH_S. Raises RecordUnavailableError."""
    with reading("latest") as reader:
        yield from _read_from(reader, reader.offsets_at(topic, partitions, since, READ_S))


def newest_of_key(topic: str, partition: int, key: bytes) -> Message | None:
    """Return the last record of a key on a partition, None if there is none.

    Raises RecordUnavailableError, also if the partition's end is not reached within READ_S.
    """
    deadline, found = time.monotonic() + READ_S, None
    with reading("earliest") as reader:
        reader.client.assign([TopicPartition(topic, partition, OFFSET_BEGINNING)])
        while (left_s := deadline - time.monotonic()) > 0:
            for message in reader.read(left_s):
                error = message.error()
                if error is None and message.key() == key:
                    found = message
                elif error is not None and error.code() == KafkaError._PARTITION_EOF:
                    return found
        raise BrokersUnavailableError


def newest_messages(topic: str, partitions: Sequence[int], most: int) -> Iterator[Message]:
    """Yield the newest `most` messages of each of these partitions in offset order, within SEARCH_S.

    Raises RecordUnavailableError.
    """
    with reading("earliest") as reader:
        starts = []
        for partition in partitions:
            low, high = reader.limits(topic, partition, READ_S)
            starts.append(TopicPartition(topic, partition, max(low, high - most)))
        yield from _read_from(reader, starts)


def _read_from(reader: RecordReader, starts: list[TopicPartition]) -> Iterator[Message]:
    """Yield messages up to the ends of the partitions, or for SEARCH_S after all of them have answered.

    Raises RecordUnavailableError if a partition does not answer within READ_S: a record is not known to be missing
    from a partition that was not read.
    """
    reader.client.assign(starts)
    open_ = {start.partition for start in starts}
    silent = set(open_)
    deadline = time.monotonic() + READ_S
    while open_ and (left_s := deadline - time.monotonic()) > 0:
        for message in reader.read(left_s):
            if message.partition() in silent:
                silent.discard(message.partition())
                deadline = deadline if silent else time.monotonic() + SEARCH_S
            error = message.error()
            if error is None:
                yield message
            elif error.code() == KafkaError._PARTITION_EOF:
                open_.discard(message.partition())
    if silent:
        raise BrokersUnavailableError


def _first(reader: RecordReader, offset: int) -> Message:
    deadline = time.monotonic() + READ_S
    while (left_s := deadline - time.monotonic()) > 0:
        for message in reader.read(left_s):
            error = message.error()
            if error is None and message.offset() == offset:
                return message
            if error is not None and error.code() == KafkaError._PARTITION_EOF:
                raise RecordUnavailableError("no message has that position yet")
            if error is None or error.code() in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):
                raise RecordUnavailableError("it is older than the topic's retention time")
    raise BrokersUnavailableError


def _stored(message: Message, most_bytes: int) -> StoredRecord:
    headers = message.headers() or []
    try:
        meta = read_meta(headers)
    except (KeyError, msgspec.DecodeError) as exc:
        raise RecordUnavailableError("the record has no Penstock envelope") from exc
    shown = tuple((name, (value or b"").decode("utf-8", "replace")) for name, value in headers[1:])
    body = message.value() or b""
    at = datetime.fromtimestamp(message.timestamp()[1] / 1_000, UTC)
    position = (message.partition(), message.offset())
    return StoredRecord(meta, shown, body[:most_bytes], len(body), at, *position, bool(original_of(headers)))
