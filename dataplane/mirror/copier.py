"""One session of the mirror: copies records in the order of each partition until an error, or until it is ended."""

import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition

from dataplane.mirror.clusters import AWAY, MirrorCluster
from dataplane.mirror.lease import MirrorLease
from dataplane.mirror.positions import DivergedError, MirrorError, PartitionCopy
from dataplane.names import PartitionKey

log = logging.getLogger(__name__)

READ: Final = 1_000  # records at once
MOST_IN_FLIGHT: Final = 20_000  # read and not stored; then nothing is read
WAIT_S: Final = 0.05


class Copier:
    """Consumer of the active cluster and producer of the standby one, in one thread.

    copies: where the copy of each partition continues. The producer's reports advance them; other threads may read them
    lease:  without it, nothing is copied
    """

    def __init__(
        self,
        active: MirrorCluster,
        standby: MirrorCluster,
        copies: Mapping[PartitionKey, PartitionCopy],
        lease: MirrorLease,
    ) -> None:
        self._copies, self._lease = copies, lease
        self._reports: dict[PartitionKey, Callable[..., None]] = {
            place: partial(self._on_delivery, copy) for place, copy in copies.items()
        }
        self._error: MirrorError | None = None
        self._consumer = active.reader()
        self._producer = standby.producer("penstock-mirror")
        self._consumer.assign([TopicPartition(*place, copy.stored) for place, copy in copies.items()])

    def copy(self) -> None:
        """Copy the records that are there; wait a moment if there are none, or too many in flight.

        At MOST_IN_FLIGHT, and without the lease, nothing more is read. Raises MirrorError, KafkaException.
        """
        if len(self._producer) >= MOST_IN_FLIGHT or not self._lease.left_s:
            self._producer.poll(WAIT_S)
        else:
            for message in self._consumer.consume(READ, WAIT_S):
                self._copy(message)
        self._producer.poll(0)
        self._check()

    def flush(self) -> None:
        """Wait until what was read is stored, while the lease is valid. Raises MirrorError, KafkaException."""
        self._producer.flush(self._lease.left_s)
        self._check()

    def close(self) -> None:
        """Drop what is not stored. The next session begins where the standby cluster ends."""
        self._producer.purge()
        try:
            self._producer.flush(1)
        except KafkaException as exc:
            log.warning("the producer had failed: %s", exc.args[0].str())
        self._consumer.close()

    def _copy(self, message: Message) -> None:
        error = message.error()
        if error is not None:
            if error.code() in AWAY:
                return
            raise MirrorError(f"{message.topic()} [{message.partition()}]: {error.str()}")
        copy = self._copies[message.topic(), message.partition()]
        for _ in range(copy.take(message.offset())):
            self._produce(copy.place)
        at_ms = max(0, message.timestamp()[1])
        self._produce(copy.place, message.value(), message.key(), message.headers(), at_ms)

    def _produce(
        self, place: PartitionKey, value: Any = None, key: Any = None, headers: Any = None, at_ms: int = 0
    ) -> None:
        more = {"partition": place[1], "headers": headers, "timestamp": at_ms, "on_delivery": self._reports[place]}
        while True:
            self._lease.require()
            try:
                self._producer.produce(place[0], value, key, **more)
                return
            except BufferError:
                self._producer.poll(WAIT_S)
                self._check()

    def _on_delivery(self, copy: PartitionCopy, failed: KafkaError | None, stored: Message) -> None:
        if failed is None:
            copy.reported(stored.offset())
            if copy.error:
                self._error = DivergedError(copy.error)
        elif self._error is None:
            self._error = MirrorError(f"{copy.place[0]} [{copy.place[1]}]: {failed.str()}")

    def _check(self) -> None:
        if self._error is not None:
            raise self._error
