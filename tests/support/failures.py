"""Errors to raise at a step of a lane: errors of the client, the disk and memory, and a plain bug."""

import errno
from collections.abc import Callable
from typing import Final

from confluent_kafka import KafkaError, KafkaException

FAILURES: Final[dict[str, Callable[[], Exception]]] = {
    "kafka": lambda: KafkaException(KafkaError(KafkaError._ALL_BROKERS_DOWN)),
    "fatal": lambda: KafkaException(KafkaError(KafkaError._FATAL, "fenced", fatal=True)),
    "disk": lambda: OSError(errno.ENOSPC, "No space left on device"),
    "memory": MemoryError,
    "bug": lambda: RuntimeError("planted"),
}
