"""Producer for processes that must continue: after a fatal error a new instance replaces it.

librdkafka gives up an idempotent producer when it no longer knows which records are stored (a fatal error: the broker
lost records that it had acknowledged, or forgot the producer). confluent-kafka raises it once, from `poll` or `flush`;
`produce` raises `_FATAL` from then on. The instance's remaining records are reported as not stored.
"""

import logging
import os
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, Producer

from dataplane.runtime.kafka import SEND_NOW_S

log = logging.getLogger(__name__)

SETTLE_S: Final = 2.0  # how long `trouble` reports a replacement
MOST: Final = 5  # replacements within WITHIN_S after which a new process has to take over
WITHIN_S: Final = 60.0
POLL_S: Final = 0.05
REPORTS_S: Final = 1.0  # longest wait for the last reports of a failed instance


class ReplaceableProducer:
    """Producer with `produce`, `poll` and `flush` that replaces failed instances. Used from one thread.

    replacements: number of instances replaced so far
    instance:     random number of the current instance, above 0
    is_draining:  True while reports of a failed instance are served
    """

    def __init__(self, make: Callable[[], Producer], on_replaced: Callable[[], None] = lambda: None) -> None:
        self._make, self._on_replaced = make, on_replaced
        self._producer = make()
        self._failed: list[Producer] = []  # replaced, with reports still to be served
        self._times: deque[float] = deque(maxlen=MOST)
        self.instance = _number()
        self.replacements = 0
        self.is_draining = False

    def produce(self, *record: Any, **named: Any) -> None:
        """Like Producer.produce. A fatal error is raised, and the next record is sent by a new instance."""
        try:
            self._producer.produce(*record, **named)
        except KafkaException as exc:
            if exc.args[0].code() == KafkaError._FATAL:
                self._replace(exc.args[0])
            raise

    def poll(self, wait_s: float) -> Any:
        """Like Producer.poll, but a fatal error replaces the instance instead of being raised."""
        return self._serve(self._producer.poll, wait_s)

    def send_now(self) -> None:
        """Send buffered records without waiting for `linger.ms`; serve reports until all are stored, up to SEND_NOW_S.

        A fatal error replaces the instance.
        """
        self._serve(self._producer.flush, SEND_NOW_S)

    def flush(self, wait_s: float) -> int:
        """Like Producer.flush, but a fatal error replaces the instance.

        Uses `poll`, because a flush of 200 ms or more calls delivery callbacks while the exception is still set.
        """
        deadline = time.monotonic() + wait_s
        while (len(self._producer) or self._failed) and time.monotonic() < deadline:
            self.poll(POLL_S)
        return len(self._producer)

    @property
    def trouble(self) -> str:
        """Text that reports a replacement within the last SETTLE_S seconds; "" otherwise."""
        was_replaced = bool(self._times) and time.monotonic() - self._times[-1] < SETTLE_S
        return "the Kafka producer had a fatal error and was replaced" if was_replaced else ""

    @property
    def is_failing(self) -> bool:
        """True if instances fail so often that a new process has to take over."""
        return len(self._times) == MOST and time.monotonic() - self._times[0] < WITHIN_S

    def renew(self, why: str) -> None:
        """Replace an instance that is no longer reliable; `why` is logged."""
        log.error("replacing the Kafka producer: %s", why)
        self._producer.purge()
        self._failed.append(self._producer)
        self._producer = self._make()
        self.instance = _number()
        self.replacements += 1
        self._times.append(time.monotonic())
        self._on_replaced()

    def close(self) -> None:
        """Drop the records that are not stored, and serve their reports.

        Without this, an abandoned instance sends for ever: its queued records refer to their callbacks, which may
        refer to the producer.
        """
        self._producer.purge()
        for producer in (*self._failed, self._producer):
            self._drain(producer)
        self._failed.clear()

    def _serve(self, call: Callable[[float], int], wait_s: float) -> int:
        """Call `poll` or `flush` of the current instance, then serve the last reports of failed ones."""
        try:
            served = call(wait_s)
        except KafkaException as exc:
            if not exc.args[0].fatal():
                raise
            self._replace(exc.args[0])
            served = 0
        while self._failed:
            self._drain(self._failed.pop(0))
        return served

    def _replace(self, error: KafkaError) -> None:
        self.renew(f"fatal error: {error.str()}")

    def _drain(self, failed: Producer) -> None:
        """Serve the last reports of a failed instance. Not called from `produce`, whose caller expects no reports."""
        deadline = time.monotonic() + REPORTS_S
        self.is_draining = True
        try:
            while len(failed) and time.monotonic() < deadline:
                with suppress(KafkaException):  # the fatal error itself, if `produce` raised it first
                    failed.poll(POLL_S)
        finally:
            self.is_draining = False


def _number() -> int:
    return int.from_bytes(os.urandom(4), "big") | 1 << 31  # the top bit gives all numbers the same encoded size
