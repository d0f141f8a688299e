"""Pool of Kafka consumers for pages that read records; each is used by one reader at a time."""

import atexit
import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Final, TypeVar

import structlog
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition
from django.conf import settings

from dataplane.kafka_clients import make_consumer
from dataplane.kafka_errors import NOT_AUTHORIZED, STALE_METADATA, raise_first_error

_Answer = TypeVar("_Answer")
AT_ONCE: Final = 2_000
A_MOMENT_S: Final = 0.05
CHECK_S: Final = 0.5
LEADER_WAIT_S: Final = 0.1  # between two questions about a partition whose leader changes
_LEADER_CHANGES: Final = STALE_METADATA | {KafkaError.LEADER_NOT_AVAILABLE}
MOST_IDLE: Final = 2  # of each kind; further concurrent readers create their own consumer
LOG_AGAIN_S: Final = 60.0  # between two lines about the same refusal
log = structlog.get_logger(__name__)


class RecordUnavailableError(Exception):
    """The record cannot be read now, or no longer exists; the message says which, in a customer's terms."""

    def with_advice(self, advice: str) -> str:
        """Return the message as a sentence, followed by what the reader can do."""
        return f"{self}. {advice}"


class BrokersUnavailableError(RecordUnavailableError):
    """Kafka does not respond."""

    def __init__(self) -> None:
        super().__init__("the brokers do not respond")


class ReadRightMissingError(RecordUnavailableError):
    """The Kafka user of this process may not read the topic."""

    def __init__(self) -> None:
        super().__init__("Penstock may not read its event log; contact the operator of this installation")

    def with_advice(self, advice: str) -> str:  # noqa: ARG002 it would ask to repeat, which cannot help
        """Return the message as a sentence: it says already what the reader can do."""
        return f"{self}."


def unreadable(error: KafkaError | None) -> RecordUnavailableError:
    """Return the exception for an error of Kafka, or for no response. Logs a missing right for the operator."""
    if error is not None and error.code() in NOT_AUTHORIZED:
        _log_refusal(error.str())
        return ReadRightMissingError()
    return BrokersUnavailableError()


# By reason: the time from which a refusal is logged again.
_log_due: Final[dict[str, float]] = {}


def _log_refusal(reason: str) -> None:
    """Log a refusal and the command that grants the right, at most once per LOG_AGAIN_S and reason."""
    now = time.monotonic()
    if now >= _log_due.get(reason, now):
        _log_due[reason] = now + LOG_AGAIN_S
        log.warning("read of pages refused", reason=reason, grant="manage.py kafka_access roles --apply")


def check_read_right(client: Consumer, topic: str) -> None:
    """Raise KafkaException if the brokers refuse the topic to this user; return if they do not respond in CHECK_S.

    Without any right to a topic, a consumer gets no error for its assigned partitions: it waits.
    """
    error = None
    with suppress(KafkaException):
        error = client.list_topics(topic, timeout=CHECK_S).topics[topic].error
    if error is not None and error.code() in NOT_AUTHORIZED:
        raise _refusal_of(topic, error)


def raise_refusal(messages: Iterable[Message]) -> None:
    """Raise KafkaException for the first message that is an error because this user may not read the topic.

    A refused group does not matter: partitions are assigned, and nothing is committed.
    """
    for message in messages:
        error = message.error()
        if error is not None and error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
            raise _refusal_of(message.topic(), error)


def _refusal_of(topic: str | None, error: KafkaError) -> KafkaException:
    """Return the exception for an error whose text does not name its topic."""
    return KafkaException(KafkaError(error.code(), f"{topic}: {error.str()}"))


class RecordReader:
    """Consumer of assigned partitions that fails at once if all brokers refuse its connections."""

    def __init__(self, kafka: str, reset: str) -> None:
        self.is_away = False
        self._last_topic = ""  # of the last request for offsets
        self.client = make_consumer(
            {
                "bootstrap.servers": kafka,
                "group.id": "penstock.show",  # the client requires a group; nothing is ever committed
                "enable.auto.commit": False,
                "auto.offset.reset": reset,
                "fetch.wait.max.ms": 10,
                "enable.partition.eof": True,
                "error_cb": self._note,
                "log_level": 0,
            }
        )

    def read(self, wait_s: float) -> list[Message]:
        """Return the available messages. Raises BrokersUnavailableError, KafkaException if they may not be read."""
        if self.is_away:
            raise BrokersUnavailableError
        found: list[Message] = self.client.consume(AT_ONCE, min(wait_s, A_MOMENT_S))
        raise_refusal(found)
        return found

    def offsets_at(self, topic: str, partitions: Iterable[int], since: datetime, wait_s: float) -> list[TopicPartition]:
        """Return the first offset at or after `since` of each partition. Raises KafkaException."""
        self._last_topic = topic
        places = [TopicPartition(topic, partition, int(since.timestamp() * 1_000)) for partition in partitions]

        def ask(left_s: float) -> list[TopicPartition]:
            found: list[TopicPartition] = self.client.offsets_for_times(places, timeout=left_s)
            raise_first_error(found)
            return found

        return answer_within(wait_s, ask)

    def limits(self, topic: str, partition: int, wait_s: float) -> tuple[int, int]:
        """Return the low and high watermark of a partition. Raises KafkaException."""
        self._last_topic, place = topic, TopicPartition(topic, partition)

        def ask(left_s: float) -> tuple[int, int]:
            found: tuple[int, int] = self.client.get_watermark_offsets(place, timeout=left_s)
            return found

        return answer_within(wait_s, ask)

    def failure(self, error: KafkaError | None = None) -> RecordUnavailableError:
        """Return the exception for a read that failed with this error, or without one because no broker responded."""
        topics = {place.topic for place in self.client.assignment()} or {self._last_topic} - {""}
        try:
            for topic in () if self.is_away else topics:
                check_read_right(self.client, topic)
        except KafkaException as exc:
            error = exc.args[0]
        return unreadable(error)

    def is_usable(self) -> bool:
        """Return False if it lost its brokers since its last use: a new consumer notices their return sooner."""
        self.client.poll(0)
        return not self.is_away

    def _note(self, error: KafkaError) -> None:
        self.is_away = self.is_away or error.code() == KafkaError._ALL_BROKERS_DOWN


def answer_within(wait_s: float, ask: Callable[[float], _Answer]) -> _Answer:
    """Return the brokers' answer; ask again while the leader of a partition changes, for `wait_s` in all.

    ask: takes the seconds that are left. Raises KafkaException.
    """
    deadline = time.monotonic() + wait_s
    while True:
        try:
            return ask(max(0.0, deadline - time.monotonic()))
        except KafkaException as exc:
            if exc.args[0].code() not in _LEADER_CHANGES or time.monotonic() + LEADER_WAIT_S >= deadline:
                raise
            time.sleep(LEADER_WAIT_S)


# By process, as a forked child cannot use its parent's consumers; by brokers; and by `auto.offset.reset`.
_idle: Final[dict[tuple[int, str, str], list[RecordReader]]] = defaultdict(list)


@contextmanager
def reading(reset: str) -> Iterator[RecordReader]:
    """Provide a reader without assigned partitions, and return it to the pool afterwards.

    Raises BrokersUnavailableError or ReadRightMissingError for Kafka's errors; the reader is then closed.

    reset: `auto.offset.reset` for an offset that no longer exists: `earliest`, `latest` or `error`
    """
    idle = _idle[os.getpid(), settings.PENSTOCK_KAFKA, reset]
    reader = _usable(idle) or RecordReader(settings.PENSTOCK_KAFKA, reset)
    failed = False
    try:
        yield reader
    except KafkaException as exc:
        failed = True
        raise reader.failure(exc.args[0]) from exc
    except BrokersUnavailableError as exc:
        failed = True
        raise reader.failure() from exc
    finally:
        if failed or len(idle) >= MOST_IDLE:
            reader.client.close()
        else:
            reader.client.unassign()
            idle.append(reader)


@atexit.register
def close_readers() -> None:
    """Close this process's idle readers. The next read creates new ones."""
    for (pid, *_), idle in _idle.items():
        if pid == os.getpid():
            while idle:
                idle.pop().client.close()


def _usable(idle: list[RecordReader]) -> RecordReader | None:
    """Return an idle reader that is usable, or None."""
    with suppress(IndexError):  # none is left
        while not (reader := idle.pop()).is_usable():
            reader.client.close()
        return reader
    return None
