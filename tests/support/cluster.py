"""Topics and control records for one cell on a real broker."""

import hashlib
import json
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import msgspec
from confluent_kafka import KafkaError, KafkaException, Message
from confluent_kafka.admin import NewTopic
from cryptography.fernet import Fernet

from controlplane.topics import ExistingTopic, TopicCreator
from dataplane.names import (
    ALL_KEYS_PERCENT,
    AUDIT_TOPIC,
    CONTROL_TOPIC,
    HEARTBEAT_TOPIC,
    INPUTS_OF,
    LANE_KINDS,
    LOOKUP_TOPIC,
    ONE_PARTITION,
    OPERATIONAL_TOPIC,
    PURPOSES,
    QUERY_INPUTS,
    WEBHOOK_PATH,
    LaneKind,
    Purpose,
    cell_topic,
    lane_group,
    output_topic,
    query_group,
)
from dataplane.record_limits import TOPIC_MAX_BYTES
from dataplane.spec import PipeSpec, TableDestination, parse_pipe_spec
from dataplane.spec.keys import RANDOM_BYTES, URL_PREFIX, key_digest, key_text
from dataplane.tables.lookups import TableRecord, encode_row, encode_table, row_key, table_key
from dataplane.tables.records import (
    ApiKeyRecord,
    CellRecord,
    DestinationRecord,
    PipeRecord,
    PlanRecord,
    Record,
    ReplayRecord,
    StopRecord,
    TopicRecord,
    WebhookRecord,
    encode_record,
    record_key,
)
from dataplane.tables.sealed import bind, credential_place, webhook_place
from tests.support.broker import Broker
from tests.support.kafka import admin_producer, broker_admin
from tests.support.patience import Patience

SECRET = "whsec_" + "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
SIZES = {"max.message.bytes": str(TOPIC_MAX_BYTES)}  # as the Provisioner sets it
PIPE = "pipe_rig"
TENANT = "ten_rig"
Credentials = Mapping[str, Mapping[str, str]]  # the secret of each destination's auth, by the destination's name
DestinationState = Literal["active", "paused", "suspended", "removed"]


def key_of(name: str) -> str:
    """Return a well-formed API key, the same for the same name."""
    return key_text(hashlib.sha256(name.encode()).digest()[:RANDOM_BYTES])


KEY = key_of(PIPE)

# PENSTOCK_QUOTAS that no load on one machine exceeds: above the defaults, ingest would answer 429.
HIGH_QUOTAS = "events_per_s=10000000,bytes_per_s=100000000000"


@contextmanager
def broker_for_cells(var: Path) -> Iterator[Broker]:
    """Run a broker with what all cells share, for tests that each create a cell of their own on it."""
    broker = Broker(var)
    broker.start()
    try:
        Cluster(broker.address).make_cluster_topics()
        yield broker
    finally:
        broker.stop()


class Cluster:
    """One cell, and one pipe with one source `shop`; `destinations` maps names to URLs."""

    def __init__(self, kafka: str, cell: str = "c1", partitions: int = 4) -> None:
        self.kafka, self.cell, self.partitions = kafka, cell, partitions
        self.epoch = 1  # of the cell's application
        self.admin = broker_admin(kafka, log_level=3)
        self.producer = admin_producer({"bootstrap.servers": kafka, "acks": "all", "log_level": 3})
        self.fernet_key = Fernet.generate_key().decode()
        self.topics: dict[Purpose, TopicRecord] = {}
        self.published = 0  # next offset of the control topic after the newest record that was published here
        self._version = int(time.time() * 1000)

    def make_topics(self) -> None:
        """Create every topic of the cell and the cluster, with first offsets committed for the lane groups."""
        self.make_cluster_topics()
        self.make_cell_topics(LANE_KINDS)

    def make_cluster_topics(self) -> None:
        """Create the topics that all cells share."""
        single = (HEARTBEAT_TOPIC, OPERATIONAL_TOPIC)
        shared = [NewTopic(AUDIT_TOPIC, 4, 1, config=SIZES), *(NewTopic(name, 1, 1, config=SIZES) for name in single)]
        compacted = {"cleanup.policy": "compact"} | SIZES
        self._make([*shared, *(NewTopic(name, 1, 1, config=compacted) for name in (CONTROL_TOPIC, LOOKUP_TOPIC))])

    def make_cell_topics(self, kinds: Iterable[LaneKind]) -> None:
        """Create every topic of the cell, with first offsets committed for the groups of these kinds of lanes."""
        names = {purpose: cell_topic(self.cell, purpose, 1) for purpose in PURPOSES}
        self._make(NewTopic(name, self._partitions_of(purpose), 1, config=SIZES) for purpose, name in names.items())
        made = {purpose: ExistingTopic(name, "", self._partitions_of(purpose)) for purpose, name in names.items()}
        lanes = {lane_group(self.cell, kind): [made[purpose] for purpose in INPUTS_OF[kind]] for kind in kinds}
        queries = {query_group(self.cell, query): [made[purpose]] for query, purpose in QUERY_INPUTS.items()}
        self._commit_first_offsets(lanes | queries)
        for purpose, topic in made.items():
            self.topics[purpose] = TopicRecord(topic.name, 1, topic.partitions, "")

    def _commit_first_offsets(self, groups: Mapping[str, list[ExistingTopic]]) -> None:
        """Commit first offsets; retry, as the Provisioner does, while a new topic has no known leader."""
        patience = Patience(60)
        while True:
            try:
                return TopicCreator(self.kafka).commit_first_offsets(groups)
            except KafkaException:
                if patience.is_over:
                    raise
                time.sleep(0.5)

    def make_output_topic(self, pipe: str, destination: str) -> None:
        """Create the topic of a destination of type `topic`."""
        self._make([NewTopic(output_topic(pipe, destination), 1, 1, config=SIZES)])

    def _make(self, topics: Iterable[NewTopic]) -> None:
        for future in self.admin.create_topics(list(topics)).values():
            future.result()

    def _partitions_of(self, purpose: Purpose) -> int:
        return 1 if purpose in ONE_PARTITION else self.partitions

    def publish(self, *records: Record) -> None:
        """Put records on the control topic and wait until they are stored."""
        for record in records:
            key, value = record_key(record), encode_record(record)
            self.producer.produce(CONTROL_TOPIC, key=key, value=value, on_delivery=self._stored)
        assert self.producer.flush(20) == 0

    def _stored(self, error: KafkaError | None, message: Message) -> None:
        assert error is None, error
        self.published = max(self.published, message.offset() + 1)

    def publish_rows(self, table: str, rows: Mapping[str, bytes | None]) -> None:
        """Publish rows (JSON text by key; None removes) of the tenant's look-up table, then the table."""
        table_id, version = f"tab_{table}", self.version()
        for key, row in rows.items():
            self.producer.produce(LOOKUP_TOPIC, key=row_key(table_id, key), value=encode_row(version, row))
        record = TableRecord(table_id, version, TENANT, table)
        self.producer.produce(LOOKUP_TOPIC, key=table_key(table_id), value=encode_table(record))
        assert self.producer.flush(20) == 0

    def version(self) -> int:
        """Return a version higher than the last one."""
        self._version += 1
        return self._version

    def publish_replay(
        self,
        replay: str,
        pipe: str,
        destinations: list[str],
        since_us: int,
        rate_per_s: float,
        *,
        revision: int = 1,
        **more: Any,
    ) -> int:
        """Publish a running replay of all events since a time, as the Provisioner does; return the end of its range."""
        until_us, of_cell = time.time_ns() // 1_000, (replay, self.version(), self.cell)
        span = (since_us, until_us, until_us // 60_000_000)
        self.publish(ReplayRecord(*of_cell, pipe, revision, destinations, *span, rate_per_s, "running", **more))
        return until_us

    def add_webhook(self, pipe: str, preset: str, secret: str, *headers: str) -> str:
        """Publish webhook settings and a URL of a pipe's source `shop`; return its path. Add the pipe afterwards."""
        part = key_text(hashlib.sha256(f"url of {pipe}".encode()).digest()[:RANDOM_BYTES], URL_PREFIX)
        sealed = Fernet(self.fernet_key).encrypt(bind(secret, webhook_place(pipe, "shop")).encode()).decode()
        self.publish(
            WebhookRecord(pipe, "shop", self.version(), preset, [sealed], list(headers)),
            ApiKeyRecord(key_digest(part), self.version(), pipe, "shop"),
        )
        return WEBHOOK_PATH + part

    def publish_pipe(
        self, destinations: Mapping[str, str], normalize: list[dict[str, Any]] | None = None, **lanes: int
    ) -> None:
        """Publish the cell, the pipe at revision 1, its key and its destinations."""
        self.publish_cell(**lanes)
        self.add_pipe(PIPE, KEY, {name: {"url": url} for name, url in destinations.items()}, normalize=normalize or [])

    def add_pipe(
        self,
        pipe: str,
        key: str,
        destinations: Mapping[str, dict[str, Any]],
        credentials: Credentials = MappingProxyType({}),
        admitted: int = ALL_KEYS_PERCENT,
        destination_version: int = 0,
        tenant: str = TENANT,
        **spec: Any,
    ) -> None:
        """Publish a pipe at revision 1 with one source `shop`, its key and its destinations (fields as in the spec).

        destination_version: of the destinations' records, where rows of a test name it; 0 is a new one for each
        """
        parsed = self._parsed(destinations, **spec)
        self.publish(PlanRecord(pipe, 1, parsed, self.version()))
        self.publish_destinations(pipe, destinations, credentials=credentials, version=destination_version)
        record = PipeRecord(pipe, self.version(), tenant, "rig", self.cell, "active", [(1, 100)])
        record = msgspec.structs.replace(record, admitted=admitted, by_shares=admitted < ALL_KEYS_PERCENT)
        self.publish(record, ApiKeyRecord(key_digest(key), self.version(), pipe, "shop"))

    def publish_destinations(
        self,
        pipe: str,
        destinations: Mapping[str, dict[str, Any]],
        state: DestinationState = "active",
        credentials: Credentials = MappingProxyType({}),
        version: int = 0,
    ) -> None:
        """Publish how destinations of a pipe are reached from now on (fields as in the spec)."""
        fernet = Fernet(self.fernet_key)
        signing = fernet.encrypt(SECRET.encode()).decode()
        keyed = self._parsed(destinations, sources={"shop": {"key": "id"}})  # as a compacted topic needs it
        for name, to in keyed.destinations.items():
            table = f"tab_{to.table}" if isinstance(to, TableDestination) else ""
            record = DestinationRecord(pipe, name, version or self.version(), state, to, [signing], table=table)
            if secret := credentials.get(name):
                text = bind(json.dumps(dict(secret)), credential_place(pipe, name))
                record = msgspec.structs.replace(record, credential=fernet.encrypt(text.encode()).decode())
            self.publish(record)

    @staticmethod
    def _parsed(destinations: Mapping[str, dict[str, Any]], **spec: Any) -> PipeSpec:
        http = {name: {"type": "http", **fields} for name, fields in destinations.items()}
        return parse_pipe_spec({"sources": {"shop": {}}, **spec, "destinations": http})

    def publish_cell(self, **lanes: int) -> None:
        """Publish the number of lanes of each kind (`transmit_retry` for transmit-retry), by default one each."""
        wanted: dict[LaneKind, int] = {kind: lanes.get(kind.replace("-", "_"), 1) for kind in LANE_KINDS}
        self.publish(CellRecord(self.cell, self.version(), self.epoch, wanted, self.topics))

    def stop(self, incarnation: str) -> None:
        """Ask an application to drain."""
        self.publish(StopRecord(self.cell, self.version(), incarnation))

    def env(self, var: str, port: int) -> dict[str, str]:
        """Return the environment of the data plane's processes."""
        return {
            "PENSTOCK_KAFKA": self.kafka,
            "PENSTOCK_VAR": var,
            "PENSTOCK_INGEST_PORT": str(port),
            "PENSTOCK_FERNET_KEYS": self.fernet_key,
            "PENSTOCK_DESTINATION_ALLOW": "127.0.0.0/8",
        }
