"""A producer for processes that must go on: after a fatal error a new instance takes its place.

librdkafka gives up an idempotent producer when it cannot tell any more what is stored (a fatal error: the broker lost
records that it had acknowledged, or forgot the producer). confluent-kafka raises it once, out of `poll` or `flush`;
`produce` raises `_FATAL` from then on. What the instance still had is reported as not stored.
"""

import logging
import os
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, Producer

log = logging.getLogger(__name__)

SETTLE_S: Final = 2.0  # a process says for so long that its producer was replaced
MOST: Final = 5  # replacements within WITHIN_S; more of them, and a new process has to take over
WITHIN_S: Final = 60.0
POLL_S: Final = 0.05
REPORTS_S: Final = 1.0  # how long the last reports of a failed instance are waited for


class ReplaceableProducer:
    """`produce`, `poll` and `flush` of the instance of now. Used from one thread.

    replacements: how often an instance was replaced
    instance:     a random number of the instance of now, above 0
    is_draining:  whether the reports that come now are of instances that failed
    """

    def __init__(self, make: Callable[[], Producer], on_replaced: Callable[[], None] = lambda: None) -> None:
        self._make, self._on_replaced = make, on_replaced
        self._producer = make()
        self._failed: list[Producer] = []  # replaced, and their last reports are still to come
        self._times: deque[float] = deque(maxlen=MOST)
        self.instance = _number()
        self.replacements = 0
        self.is_draining = False

    def produce(self, *record: Any, **named: Any) -> None:
        """As Producer.produce. After a fatal error it raises once more, and the next record goes to a new instance."""
        try:
            self._producer.produce(*record, **named)
        except KafkaException as exc:
            if exc.args[0].code() == KafkaError._FATAL:
                self._replace(exc.args[0])
            raise

    def poll(self, wait_s: float) -> Any:
        """As Producer.poll, but a fatal error replaces the instance instead of being raised."""
        try:
            reported = self._producer.poll(wait_s)
        except KafkaException as exc:
            if not exc.args[0].fatal():
                raise
            self._replace(exc.args[0])
            reported = 0
        while self._failed:
            self._drain(self._failed.pop(0))
        return reported

    def flush(self, wait_s: float) -> int:
        """As Producer.flush, likewise. By polls: a flush calls delivery callbacks with the exception still set."""
        deadline = time.monotonic() + wait_s
        while (len(self._producer) or self._failed) and time.monotonic() < deadline:
            self.poll(POLL_S)
        return len(self._producer)

    @property
    def trouble(self) -> str:
        """Return, for a moment after a replacement, that there was one; "" otherwise."""
        was_replaced = bool(self._times) and time.monotonic() - self._times[-1] < SETTLE_S
        return "the Kafka producer failed for good and was replaced" if was_replaced else ""

    @property
    def is_failing(self) -> bool:
        """True if instances fail so often that replacing them does not help."""
        return len(self._times) == MOST and time.monotonic() - self._times[0] < WITHIN_S

    def renew(self, why: str) -> None:
        """Put a new instance in the place of one that cannot be relied on any more."""
        log.error("the Kafka producer is replaced: %s", why)
        self._producer.purge()
        self._failed.append(self._producer)
        self._producer = self._make()
        self.instance = _number()
        self.replacements += 1
        self._times.append(time.monotonic())
        self._on_replaced()

    def _replace(self, error: KafkaError) -> None:
        self.renew(f"a fatal error: {error.str()}")

    def _drain(self, failed: Producer) -> None:
        """Have the last reports of a failed instance. Not from within `produce`, whose caller expects none yet."""
        deadline = time.monotonic() + REPORTS_S
        self.is_draining = True
        try:
            while len(failed) and time.monotonic() < deadline:
                with suppress(KafkaException):  # the error itself, if `produce` met it first
                    failed.poll(POLL_S)
        finally:
            self.is_draining = False


def _number() -> int:
    return int.from_bytes(os.urandom(4), "big") | 1 << 31  # of one size on the wire
