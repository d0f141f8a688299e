"""Clients of the active and of the standby cluster. One thread uses a `MirrorCluster`; each makes its own."""

import os
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    NewTopic,
    ResourceType,
)
from msgspec import Struct

from dataplane.addresses import DEFAULT_KAFKA
from dataplane.kafka_clients import make_admin_client, make_consumer, make_producer
from dataplane.kafka_errors import STALE_METADATA, raise_first_error
from dataplane.kafka_settings import kafka_settings
from dataplane.mirror.positions import GroupOffset, MirrorError, OffsetsOfGroup
from dataplane.mirror.records import MirrorRecords
from dataplane.mirror.selection import TopicLayout, is_own_topic
from dataplane.names import MIRROR_TOPIC, PartitionKey
from dataplane.record_limits import CLIENT_MAX_BYTES
from dataplane.runtime.kafka import ErrorLog

STANDBY: Final = "PENSTOCK_STANDBY_KAFKA"
STANDBY_SETTINGS: Final = "PENSTOCK_STANDBY_KAFKA_SETTINGS"
REQUEST_S: Final = 5.0
QUEUE_KIB: Final = 64 * 1024  # of records read and not copied
SENT_KIB: Final = 16 * 1024  # of records copied and not stored: they have DELIVERY_S for it
DELIVERY_S: Final = 5.0
RECORDS_MAX_BYTES: Final = 16 * 1024 * 1024  # of a record on the mirror's topic, which names each partition
# Errors of a cluster that cannot be reached, which the client retries. All others are answers.
AWAY: Final = frozenset(
    {KafkaError._ALL_BROKERS_DOWN, KafkaError._TRANSPORT, KafkaError._TIMED_OUT, KafkaError._RESOLVE}
)
# Errors of a broker while the coordinator of a group starts or moves to it. The client returns them.
COORDINATOR_MOVES: Final = frozenset(
    {KafkaError.NOT_COORDINATOR, KafkaError.COORDINATOR_NOT_AVAILABLE, KafkaError.COORDINATOR_LOAD_IN_PROGRESS}
)
COORDINATOR_S: Final = 5.0
_GROUP: Final = "penstock-mirror"  # required by the client; nothing is committed for it


class ClusterAddress(Struct, frozen=True):
    """A Kafka cluster: bootstrap servers, and settings of security."""

    servers: str
    security: dict[str, str]


class MirrorAddresses(Struct, frozen=True):
    """The two clusters of a mirror."""

    active: ClusterAddress
    standby: ClusterAddress


def mirror_addresses(env: Mapping[str, str] = os.environ) -> MirrorAddresses:
    """Read both clusters from the environment. Raises ValueError if no standby cluster is set."""
    if not (standby := env.get(STANDBY, "").strip()):
        raise ValueError(f"{STANDBY}: needs the bootstrap servers of the standby cluster")
    active = env.get("PENSTOCK_KAFKA") or DEFAULT_KAFKA
    if standby == active:
        raise ValueError(f"{STANDBY}: is the active cluster, PENSTOCK_KAFKA, itself")
    return MirrorAddresses(
        ClusterAddress(active, kafka_settings(env)),
        ClusterAddress(standby, kafka_settings(env, STANDBY_SETTINGS)),
    )


class MirrorCluster:
    """Clients of one cluster, made on first use and kept until `close`. All methods raise KafkaException."""

    def __init__(self, address: ClusterAddress) -> None:
        self.address = address
        self._admin: AdminClient | None = None
        self._groups: dict[str, Consumer] = {}
        self._reports: Producer | None = None

    def id(self) -> str:
        """Return the id of the cluster, which is the same under each of its addresses."""
        return self.admin.describe_cluster(request_timeout=REQUEST_S).result().cluster_id or ""

    def layouts(self) -> dict[str, TopicLayout]:
        """Return Penstock's topics, with the settings that were made for them. Raises KafkaException."""
        found = self.admin.list_topics(timeout=REQUEST_S).topics
        names = sorted(name for name in found if is_own_topic(name))
        if error := next((found[name].error for name in names if not found[name].partitions), None):
            raise KafkaException(error)
        resources = [ConfigResource(ResourceType.TOPIC, name) for name in names]
        configs = self.admin.describe_configs(resources, request_timeout=REQUEST_S) if resources else {}
        settings = {resource.name: _own_settings(future.result()) for resource, future in configs.items()}
        return {
            name: TopicLayout(
                name, len(found[name].partitions), len(found[name].partitions[0].replicas), settings[name]
            )
            for name in names
        }

    def partitions(self) -> dict[str, int]:
        """Return the number of partitions of Penstock's topics, and of the mirror's own."""
        found = self.admin.list_topics(timeout=REQUEST_S).topics
        return {
            name: len(topic.partitions) for name, topic in found.items() if is_own_topic(name) or name == MIRROR_TOPIC
        }

    def create(self, layouts: Iterable[TopicLayout]) -> None:
        """Create topics; those that exist stay as they are."""
        new = [NewTopic(one.name, one.partitions, one.replication, config=one.config) for one in layouts]
        if new:
            created = self.admin.create_topics(new, operation_timeout=REQUEST_S, request_timeout=REQUEST_S)
            _wait(created.values(), KafkaError.TOPIC_ALREADY_EXISTS)

    def grow(self, partitions: Mapping[str, int]) -> None:
        """Give topics that many partitions."""
        if partitions:
            new = [NewPartitions(name, count) for name, count in partitions.items()]
            _wait(self.admin.create_partitions(new, operation_timeout=REQUEST_S, request_timeout=REQUEST_S).values())

    def configure(self, names: Iterable[str], setting: str, value: str) -> None:
        """Change one setting of topics."""
        entry = ConfigEntry(setting, value, incremental_operation=AlterConfigOpType.SET)
        resources = [ConfigResource(ResourceType.TOPIC, name, incremental_configs=[entry]) for name in names]
        if resources:
            _wait(self.admin.incremental_alter_configs(resources, request_timeout=REQUEST_S).values())

    def delete_before(self, offsets: Mapping[PartitionKey, int]) -> None:
        """Delete the records below these offsets."""
        if offsets:
            asked = [TopicPartition(*place, offset) for place, offset in offsets.items()]
            _wait(self.admin.delete_records(asked, request_timeout=REQUEST_S, operation_timeout=REQUEST_S).values())

    def delete(self, names: Collection[str]) -> None:
        """Delete topics, with everything in them."""
        if names:
            deleted = self.admin.delete_topics(list(names), operation_timeout=REQUEST_S, request_timeout=REQUEST_S)
            _wait(deleted.values(), KafkaError.UNKNOWN_TOPIC_OR_PART)

    def ends(self, places: Iterable[PartitionKey]) -> dict[PartitionKey, int]:
        """Return the offset after the last record of each partition."""
        return self._offsets(list(places), OFFSET_END)

    def begins(self, places: Iterable[PartitionKey]) -> dict[PartitionKey, int]:
        """Return the first offset that each partition still has."""
        return self._offsets(list(places), OFFSET_BEGINNING)

    def committed(self, group: str, places: Iterable[PartitionKey]) -> dict[PartitionKey, GroupOffset]:
        """Return the committed offsets of a group, negative where it has none."""
        asked = [TopicPartition(*place) for place in places]
        found = ask_coordinator(lambda: self.group(group).committed(asked, timeout=REQUEST_S))
        return {(one.topic, one.partition): GroupOffset(int(one.offset), one.metadata or "") for one in found}

    def commit(self, group: str, offsets: OffsetsOfGroup) -> None:
        """Commit offsets for a group, which must have no members."""
        asked = [TopicPartition(*place, *one) for place, one in offsets.items()]
        raise_first_error(self.group(group).commit(offsets=asked, asynchronous=False) or [])

    def store(self, key: bytes, value: bytes) -> None:
        """Store a record on the mirror's topic, and wait for it. Raises KafkaException."""
        if self._reports is None:
            self._reports = make_producer(
                self._common()
                | {"acks": "all", "enable.idempotence": True, "message.timeout.ms": 5_000, "linger.ms": 0}
                | {"message.max.bytes": RECORDS_MAX_BYTES},
                self.address.security,
            )
        errors: list[KafkaError | None] = []
        self._reports.produce(MIRROR_TOPIC, value, key, on_delivery=lambda error, _: errors.append(error))
        self._reports.flush(REQUEST_S + 1)
        if not errors:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
        if errors[0] is not None:
            raise KafkaException(errors[0])

    def read_records(self) -> MirrorRecords:
        """Return the newest records of the mirror's topic; none if there is no such topic. Raises MirrorError."""
        records = MirrorRecords()
        if MIRROR_TOPIC not in self.partitions():
            return records
        reader = self.follow_records()
        try:
            while (message := reader.poll(REQUEST_S)) is not None and message.error() is None:
                records.apply([message])
        finally:
            reader.close()
        if message is None or message.error().code() != KafkaError._PARTITION_EOF:
            raise MirrorError(f"cannot read {MIRROR_TOPIC}: {message.error().str() if message else 'no response'}")
        return records

    def follow_records(self) -> Consumer:
        """Return a new consumer of the mirror's topic, from its beginning, which the caller closes."""
        reader = self.reader(**{"enable.partition.eof": True, "auto.offset.reset": "earliest"})
        reader.assign([TopicPartition(MIRROR_TOPIC, 0, OFFSET_BEGINNING)])
        return reader

    def reader(self, **more: Any) -> Consumer:
        """Return a new consumer for assigned partitions, which the caller closes."""
        return make_consumer(
            self._common()
            | {
                "group.id": _GROUP,
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "auto.offset.reset": "error",
                "fetch.wait.max.ms": 100,
                "queued.max.messages.kbytes": QUEUE_KIB,
            }
            | more,
            self.address.security,
        )

    def producer(self, name: str) -> Producer:
        """Return a new producer: idempotent, in order. A record that is not stored within DELIVERY_S ends it.

        It leaves no record out: one that the broker refuses ends it, before a later one could take its offset.
        """
        return make_producer(
            self._common()
            | {
                "client.id": name,
                "acks": "all",
                "enable.idempotence": True,
                "enable.gapless.guarantee": True,
                "message.timeout.ms": int(DELIVERY_S * 1_000),
                "linger.ms": 5,
                "compression.type": "lz4",
                "message.max.bytes": CLIENT_MAX_BYTES,
                "queue.buffering.max.messages": 100_000,
                "queue.buffering.max.kbytes": SENT_KIB,
            },
            self.address.security,
        )

    @property
    def admin(self) -> AdminClient:
        """The admin client."""
        if self._admin is None:
            self._admin = make_admin_client(self._common(), self.address.security)
        self._admin.poll(0)  # serves the client's own events: nothing else drains their queue
        return self._admin

    def group(self, group: str) -> Consumer:
        """Return the client for the offsets of a group. It joins no group."""
        if group not in self._groups:
            settings = self._common() | {"group.id": group, "enable.auto.commit": False}
            self._groups[group] = make_consumer(settings, self.address.security)
        self._groups[group].poll(0)  # as for the admin client
        return self._groups[group]

    def close(self) -> None:
        """Close all clients."""
        for client in self._groups.values():
            client.close()
        self._groups, self._admin, self._reports = {}, None, None

    def _common(self) -> dict[str, Any]:
        return {
            "bootstrap.servers": self.address.servers,
            "reconnect.backoff.max.ms": 1_000,
            "log_level": 0,
            "error_cb": ErrorLog(),
        }

    def _offsets(self, places: list[PartitionKey], at: int) -> dict[PartitionKey, int]:
        try:
            return self._offsets_at(places, at)
        except KafkaException as exc:
            if exc.args[0].code() not in (*STALE_METADATA, KafkaError._UNKNOWN_PARTITION):
                raise
            self._groups.pop(_GROUP).close()  # a new client knows new partitions, too
        return self._offsets_at(places, at)

    def _offsets_at(self, places: list[PartitionKey], at: int) -> dict[PartitionKey, int]:
        if not places:
            return {}
        # A logical offset takes the place of the timestamp (docs/kafka-clients.md).
        found = self.group(_GROUP).offsets_for_times(
            [TopicPartition(*place, at) for place in places], timeout=REQUEST_S
        )
        raise_first_error(found)
        return {(one.topic, one.partition): int(one.offset) for one in found}


def ask_coordinator(
    request: Callable[[], list[TopicPartition]], limit_s: float = COORDINATOR_S, pause_s: float = 0.1
) -> list[TopicPartition]:
    """Send a request about the offsets of a group, and repeat it while the group's coordinator starts or moves.

    Raises KafkaException: another error of the request or of a partition, or the coordinator's after `limit_s`.
    """
    give_up_at = time.monotonic() + limit_s
    while True:
        try:
            found = request()
            raise_first_error(found)
            return found
        except KafkaException as exc:
            if exc.args[0].code() not in COORDINATOR_MOVES or time.monotonic() >= give_up_at:
                raise
        time.sleep(pause_s)


def _own_settings(entries: Mapping[str, Any]) -> dict[str, str]:
    own = ConfigSource.DYNAMIC_TOPIC_CONFIG.value
    return {name: entry.value for name, entry in entries.items() if entry.source == own and entry.value is not None}


def _wait(futures: Iterable[Any], harmless: int | None = None) -> None:
    for future in futures:
        try:
            future.result()
        except KafkaException as exc:
            if exc.args[0].code() != harmless:
                raise


def first_line(exc: BaseException) -> str:
    """Return an error in one line, for logs and pages."""
    if isinstance(exc, MirrorError):
        return str(exc)
    return str(exc.args[0].str()) if isinstance(exc, KafkaException) else f"{type(exc).__name__}: {exc}"
