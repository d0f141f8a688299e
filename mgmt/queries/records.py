"""One message as it lies in Kafka, by topic, partition and offset: for showing it. The brokers are asked directly."""

import time
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from django.conf import settings

from dataplane.ledger.meta import Meta, read_meta

READ_S: Final = 3.0
SHOWN_BYTES: Final = 64 * 1024


class RecordsAway(Exception):  # noqa: N818 named for what the caller answers
    """The record cannot be read at this moment, or is gone: the message says which."""


@dataclass(frozen=True)
class StoredRecord:
    """A message: what Penstock says of it, its other headers, and the beginning of its body."""

    meta: Meta
    headers: tuple[tuple[str, str], ...]
    body: bytes
    body_bytes: int


def read_record(topic: str, partition: int, offset: int) -> StoredRecord:
    """The record at that place. Waits at most READ_S. Raises RecordsAway."""
    consumer = Consumer(
        {
            "bootstrap.servers": settings.PENSTOCK_KAFKA,
            "group.id": "penstock.show",  # the client wants a name; nothing is ever committed
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "log_level": 0,
        }
    )
    try:
        consumer.assign([TopicPartition(topic, partition, offset)])
        return _stored(_first(consumer, offset))
    except KafkaException as exc:
        raise RecordsAway("the brokers do not answer") from exc
    finally:
        consumer.close()


def _first(consumer: Any, offset: int) -> Any:
    deadline = time.monotonic() + READ_S
    while (left_s := deadline - time.monotonic()) > 0:
        message = consumer.poll(left_s)
        if message is None:
            continue
        error = message.error()
        if error is None:
            if message.offset() != offset:
                break
            return message
        if error.code() in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):
            break
    else:
        raise RecordsAway("the brokers do not answer")
    raise RecordsAway("it is older than the topic keeps records")


def _stored(message: Any) -> StoredRecord:
    headers = message.headers() or []
    try:
        meta = read_meta(headers)
    except (KeyError, msgspec.DecodeError) as exc:
        raise RecordsAway("the record there is none of ours") from exc
    shown = tuple((name, (value or b"").decode("utf-8", "replace")) for name, value in headers[1:])
    body = message.value() or b""
    return StoredRecord(meta, shown, body[:SHOWN_BYTES], len(body))
