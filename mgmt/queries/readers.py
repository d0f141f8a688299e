"""Kafka consumers for pages that read records: kept between reads, each lent to one reader at a time."""

import atexit
import os
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message
from django.conf import settings

AT_ONCE: Final = 2_000
A_MOMENT_S: Final = 0.05
MOST_IDLE: Final = 2  # of each kind; more readers at once have one of their own


class RecordsAway(Exception):  # noqa: N818 named for what the caller answers
    """The record cannot be read at this moment, or is gone: the message says which."""


class BrokersAway(RecordsAway):
    """Kafka does not answer."""

    def __init__(self) -> None:
        super().__init__("the brokers do not answer")


class Reader:
    """A consumer for assigned partitions that waits for no broker, if all refuse its connections."""

    def __init__(self, kafka: str, reset: str) -> None:
        self.is_away = False
        self.client = Consumer(
            {
                "bootstrap.servers": kafka,
                "group.id": "penstock.show",  # the client wants a name; nothing is ever committed
                "enable.auto.commit": False,
                "auto.offset.reset": reset,
                "fetch.wait.max.ms": 10,
                "enable.partition.eof": True,
                "error_cb": self._note,
                "log_level": 0,
            }
        )

    def read(self, wait_s: float) -> list[Message]:
        """Return what there is. Raises BrokersAway."""
        if self.is_away:
            raise BrokersAway
        found: list[Message] = self.client.consume(AT_ONCE, min(wait_s, A_MOMENT_S))
        return found

    def is_usable(self) -> bool:
        """Return False if it has lost its brokers since it was used last: a new one sees sooner if they are back."""
        self.client.poll(0)
        return not self.is_away

    def _note(self, error: KafkaError) -> None:
        self.is_away = self.is_away or error.code() == KafkaError._ALL_BROKERS_DOWN


# By process, as a forked child cannot use its parent's; by brokers and by what the consumer does without an offset.
_idle: Final[dict[tuple[int, str, str], list[Reader]]] = defaultdict(list)


@contextmanager
def reading(reset: str) -> Iterator[Reader]:
    """Lend a reader that has nothing assigned. Raises BrokersAway for Kafka's errors, and does not lend it again then.

    reset: what it does at a partition whose offset is gone: `earliest`, `latest` or `error`
    """
    idle = _idle[os.getpid(), settings.PENSTOCK_KAFKA, reset]
    reader = _take(idle) or Reader(settings.PENSTOCK_KAFKA, reset)
    failed = False
    try:
        yield reader
    except KafkaException as exc:
        failed = True
        raise BrokersAway from exc
    except BrokersAway:
        failed = True
        raise
    finally:
        if failed or len(idle) >= MOST_IDLE:
            reader.client.close()
        else:
            reader.client.unassign()
            idle.append(reader)


@atexit.register
def close_readers() -> None:
    """Close this process's idle readers. The next page that reads makes new ones."""
    for (pid, *_), idle in _idle.items():
        if pid == os.getpid():
            while idle:
                idle.pop().client.close()


def _take(idle: list[Reader]) -> Reader | None:
    """Return an idle reader that can be used, if there is one."""
    with suppress(IndexError):  # none is left
        while not (reader := idle.pop()).is_usable():
            reader.client.close()
        return reader
    return None
