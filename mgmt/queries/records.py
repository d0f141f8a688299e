"""Messages as they lie in Kafka, by place or by time: for showing them. The brokers are asked directly."""

import time
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import msgspec
from confluent_kafka import OFFSET_BEGINNING, KafkaError, Message, TopicPartition

from dataplane.ledger.deadletter import original_of
from dataplane.ledger.meta import Meta, read_meta
from mgmt.queries.readers import BrokersAway, Reader, RecordsAway, reading

__all__ = [
    "ForeignRecord",
    "RecordsAway",
    "StoredRecord",
    "messages_since",
    "newest_messages",
    "newest_of_key",
    "read_record",
    "records_since",
]

READ_S: Final = 3.0
SEARCH_S: Final = 0.8
SHOWN_BYTES: Final = 64 * 1024


class ForeignRecord(RecordsAway):
    """The record at that place belongs to a pipe that was not asked for: topics are shared by tenants."""


@dataclass(frozen=True)
class StoredRecord:
    """A message: what Penstock says of it, its other headers, the beginning of its body, when the broker took it."""

    meta: Meta
    headers: tuple[tuple[str, str], ...]
    body: bytes
    body_bytes: int
    stored_at: datetime | None = None
    partition: int = 0
    offset: int = 0
    is_reference: bool = False  # a dead letter without its message, which was too large to be copied


def read_record(
    topic: str, partition: int, offset: int, *, pipes: Container[str], most_bytes: int = SHOWN_BYTES
) -> StoredRecord:
    """Read the record at a place, with up to `most_bytes` of its body, if it belongs to one of these pipes.

    Waits at most READ_S. Raises ForeignRecord for another pipe's record, RecordsAway if there is none to be read.
    """
    with reading("error") as reader:
        reader.client.assign([TopicPartition(topic, partition, offset)])
        record = _stored(_first(reader, offset), most_bytes)
    if record.meta.pipe not in pipes:
        raise ForeignRecord("that place holds another pipe's message")
    return record


def records_since(
    topic: str, partitions: Sequence[int], since: datetime, is_wanted: Callable[[Message], bool], *, most: int = 1
) -> list[StoredRecord]:
    """The first records of these partitions, taken by the broker at `since` or later, that are wanted.

    Fewer than `most` if there are no more as far as SEARCH_S allows to look. Raises RecordsAway.
    """
    found = []
    for message in messages_since(topic, partitions, since):
        if is_wanted(message):
            found.append(_stored(message, SHOWN_BYTES))
            if len(found) == most:
                break
    return found


def messages_since(topic: str, partitions: Sequence[int], since: datetime) -> Iterator[Message]:
    """Everything on these partitions from then on, as far as SEARCH_S allows. Raises RecordsAway."""
    with reading("latest") as reader:
        at_ms = int(since.timestamp() * 1_000)
        asked = [TopicPartition(topic, partition, at_ms) for partition in partitions]
        yield from _read_from(reader, reader.client.offsets_for_times(asked, timeout=READ_S))


def newest_of_key(topic: str, partition: int, key: bytes) -> Message | None:
    """The last record of a key on a partition, None if there is none. Raises RecordsAway, also after READ_S."""
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
    raise BrokersAway


def newest_messages(topic: str, partitions: Sequence[int], most: int) -> Iterator[Message]:
    """The newest `most` of each of these partitions, in their order, as far as SEARCH_S allows. Raises RecordsAway."""
    with reading("earliest") as reader:
        places = [TopicPartition(topic, partition) for partition in partitions]
        for place in places:
            low, high = reader.client.get_watermark_offsets(place, timeout=READ_S)
            place.offset = max(low, high - most)
        yield from _read_from(reader, places)


def _read_from(reader: Reader, places: list[TopicPartition]) -> Iterator[Message]:
    """Until the ends that the partitions have, or for SEARCH_S from when each of them has answered.

    Raises RecordsAway if one does not within READ_S: what was not looked at is not known to be missing.
    """
    reader.client.assign(places)
    open_ = {place.partition for place in places}
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
        raise BrokersAway


def _first(reader: Reader, offset: int) -> Message:
    deadline = time.monotonic() + READ_S
    while (left_s := deadline - time.monotonic()) > 0:
        for message in reader.read(left_s):
            error = message.error()
            if error is None and message.offset() == offset:
                return message
            if error is not None and error.code() == KafkaError._PARTITION_EOF:
                raise RecordsAway("nothing has come to that place yet")
            if error is None or error.code() in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):
                raise RecordsAway("it is older than the topic keeps records")
    raise BrokersAway


def _stored(message: Message, most_bytes: int) -> StoredRecord:
    headers = message.headers() or []
    try:
        meta = read_meta(headers)
    except (KeyError, msgspec.DecodeError) as exc:
        raise RecordsAway("the record there is none of ours") from exc
    shown = tuple((name, (value or b"").decode("utf-8", "replace")) for name, value in headers[1:])
    body = message.value() or b""
    at = datetime.fromtimestamp(message.timestamp()[1] / 1_000, UTC)
    place = (message.partition(), message.offset())
    return StoredRecord(meta, shown, body[:most_bytes], len(body), at, *place, bool(original_of(headers)))
