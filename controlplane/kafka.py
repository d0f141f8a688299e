"""Kafka clients of the control plane: one of each kind per process, created on first use and then kept.

A client costs several threads and a connection to each broker; a task that created one per tick would create thousands
in an hour. Consumers ask for the offsets of groups and partitions; an admin client never does: see
docs/kafka-clients.md.
"""

import atexit
import ctypes
import os
import threading
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final, TypeVar

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from dataplane.kafka_clients import make_admin_client, make_consumer, make_producer
from dataplane.kafka_errors import STALE_METADATA, raise_first_error
from dataplane.names import PartitionKey
from dataplane.record_limits import CLIENT_MAX_BYTES

KeyedRecord = tuple[str | bytes, bytes | None]  # (key, value)
Client = TypeVar("Client", AdminClient, Consumer, Producer)
REQUEST_S: Final = 5.0
_SIZES: Final = {"message.max.bytes": CLIENT_MAX_BYTES}
_ALL_RECORDS: Final = {"isolation.level": "read_uncommitted"}  # ends include open transactions
OFFSET_READER: Final = "penstock-offset-reader"  # a group that no consumer joins


class RecordNotStoredError(Exception):
    """Some of the records were not stored, or it is not known that they were."""


def _common(kafka: str) -> dict[str, Any]:
    # The client's own tenth of a second logs an error for each attempt, ten times a second, for as long as it lasts.
    return {"bootstrap.servers": kafka, "reconnect.backoff.ms": 500, "reconnect.backoff.max.ms": 5_000}


def admin_client(kafka: str) -> AdminClient:
    """Make a client for topics and their configuration."""
    return make_admin_client(_common(kafka))


def consumer(kafka: str, group: str, **more: Any) -> Consumer:
    """Make a consumer that commits nothing automatically. The client requires a group name even where it is unused."""
    return make_consumer(_common(kafka) | {"group.id": group, "enable.auto.commit": False} | more)


def producer(kafka: str, **more: Any) -> Producer:
    """Make an idempotent producer; its delivery reports mean that all in-sync replicas have the record."""
    return make_producer(_common(kafka) | {"acks": "all", "enable.idempotence": True, "linger.ms": 0} | _SIZES | more)


class KafkaClients:
    """The clients of one process for one cluster, shared by its threads. A forked child makes its own."""

    def __init__(self, kafka: str) -> None:
        self._kafka = kafka
        self._lock = threading.Lock()
        self._kept: dict[str, Any] = {}

    def admin(self) -> AdminClient:
        """Return the admin client."""
        client = self._keep("admin", partial(admin_client, self._kafka))
        client.poll(0)  # serves the client's own events: nothing else drains their queue
        return client

    def group_reader(self, group: str) -> Consumer:
        """Return the consumer that asks for offsets on behalf of a group. It never joins the group."""
        return self._keep(f"group {group}", partial(consumer, self._kafka, group, **_ALL_RECORDS))

    def ends(self, partitions: Iterable[PartitionKey], timeout_s: float = REQUEST_S) -> dict[PartitionKey, int]:
        """Return the offset after the last record of each partition. Raises KafkaException."""
        return self._offsets(list(partitions), OFFSET_END, timeout_s, OFFSET_READER)

    def starts(
        self, partitions: Iterable[PartitionKey], timeout_s: float = REQUEST_S, *, group: str = OFFSET_READER
    ) -> dict[PartitionKey, int]:
        """Return the first offset that each partition still has. Raises KafkaException.

        group: the group whose reader asks; threads that ask at the same time must each use another one
        """
        return self._offsets(list(partitions), OFFSET_BEGINNING, timeout_s, group)

    def committed(
        self, group: str, partitions: Iterable[PartitionKey], timeout_s: float = REQUEST_S
    ) -> dict[PartitionKey, int]:
        """Return a group's committed offset on each partition, negative where it has none. Raises KafkaException."""
        reader = self.group_reader(group)
        reader.poll(0)  # as for the admin client
        asked = [TopicPartition(*partition) for partition in partitions]
        return _offsets_of(reader.committed(asked, timeout=timeout_s))

    def metadata(self, group: str, timeout_s: float = REQUEST_S) -> Any:
        """Return the brokers, topics and partitions that a broker knows (ClusterMetadata). Raises KafkaException.

        group: the group whose reader asks; threads that ask at the same time must each use another one. No admin client
        is asked, because other threads may use that at the same time.
        """
        reader = self.group_reader(group)
        reader.poll(0)  # as for the admin client
        return reader.list_topics(timeout=timeout_s)

    def store(
        self,
        writer: str,
        topic: str,
        records: Iterable[KeyedRecord],
        *,
        timeout_s: float,
        linger_ms: int = 0,
    ) -> None:
        """Produce (key, value) records in their order and wait for every delivery report.

        writer: name of the producer; callers that often run at once have one each, as a flush waits for all its records
        Raises: RecordNotStoredError. The producer is replaced then: it may have failed for good, and the records that
        it still holds would arrive too late.
        """
        settings = {"message.timeout.ms": int(timeout_s * 1_000), "linger.ms": linger_ms}
        client = self._keep(f"producer {writer}", partial(producer, self._kafka, **settings))
        errors: list[str] = []
        try:
            count = _produce(client, topic, records, errors)
            unsent = client.flush(timeout_s + 1)
        except KafkaException as exc:  # a fatal error is raised here, not reported
            self._discard(client)
            raise RecordNotStoredError(f"the producer failed: {exc.args[0].str()}") from exc
        if errors or unsent:
            client.purge()
            self._discard(client)
            raise RecordNotStoredError(f"{len(errors) + unsent} of {count} records not stored: {errors[:1]}")

    def close(self) -> None:
        """Close all clients. The next use makes new ones."""
        with self._lock:
            kept, self._kept = self._kept, {}
        for client in kept.values():
            if isinstance(client, Consumer):
                client.close()

    def _keep(self, name: str, make: Callable[[], Client]) -> Client:
        with self._lock:
            client: Client | None = self._kept.get(name)
            if client is None:  # not `if not client`: an idle admin client is falsy
                client = self._kept[name] = make()
            return client

    def _discard(self, client: Any) -> None:
        with self._lock:
            self._kept = {name: kept for name, kept in self._kept.items() if kept is not client}

    def _offsets(
        self, partitions: list[PartitionKey], at: int, timeout_s: float, group: str
    ) -> dict[PartitionKey, int]:
        try:
            return self._offsets_at(partitions, at, timeout_s, group)
        except KafkaException as exc:
            if exc.args[0].code() not in STALE_METADATA:
                raise
        return self._offsets_at(partitions, at, timeout_s, group)

    def _offsets_at(
        self, partitions: list[PartitionKey], at: int, timeout_s: float, group: str
    ) -> dict[PartitionKey, int]:
        if not partitions:
            return {}
        reader = self.group_reader(group)
        reader.poll(0)  # as for the admin client
        # In a ListOffsets request a logical offset takes the place of the timestamp, and the client passes it on.
        found = reader.offsets_for_times([TopicPartition(*asked, at) for asked in partitions], timeout=timeout_s)
        return _offsets_of(found)

    def begin_in_child(self) -> None:
        """Forget the parent's clients. They are never freed: that would wait for threads that a child does not have."""
        for client in self._kept.values():
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(client))
        self._lock, self._kept = threading.Lock(), {}


def _offsets_of(found: list[TopicPartition]) -> dict[PartitionKey, int]:
    """Return the offset of each partition. Raises KafkaException for the first partition with an error."""
    raise_first_error(found)
    return {(partition.topic, partition.partition): int(partition.offset) for partition in found}


def _produce(client: Producer, topic: str, records: Iterable[KeyedRecord], errors: list[str]) -> int:
    """Queue all records at the producer's pace and return their count. Errors of delivery reports go to `errors`."""

    def report(error: Any, _message: Any) -> None:
        if error is not None:
            errors.append(error.str())

    count = 0
    for key, value in records:
        while True:
            try:
                client.produce(topic, value, key, on_delivery=report)
                break
            except BufferError:
                client.poll(0.1)
        client.poll(0)
        count += 1
    return count


_clusters: Final[dict[str, KafkaClients]] = {}


def kafka_clients(kafka: str) -> KafkaClients:
    """Return this process's clients for the cluster at these bootstrap servers."""
    return _clusters.setdefault(kafka, KafkaClients(kafka))


@atexit.register
def close_kafka_clients() -> None:
    """Close every client that `kafka_clients` returned."""
    for clients in list(_clusters.values()):
        clients.close()


def _begin_in_child() -> None:
    for clients in _clusters.values():
        clients.begin_in_child()


# A client's thread may hold a lock of the C library (that of getaddrinfo, for one) at the moment of the fork; the child
# would wait for it forever. So the parent closes its clients first, and makes new ones on the next use.
os.register_at_fork(before=close_kafka_clients, after_in_child=_begin_in_child)
