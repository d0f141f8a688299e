"""Topics shared by all cells, the groups that read a cell's topics, and an idempotent `ensure` that makes topics.

It never recreates a topic that was already bound to an id: offsets of the old topic would be applied to the new one.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from types import MappingProxyType
from typing import Any, Final

import structlog
from confluent_kafka import KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import (
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)
from msgspec import Struct

from controlplane.kafka import kafka_clients
from controlplane.settings import AUDIT_RETENTION_MS, HEARTBEAT_RETENTION_MS, OPERATIONAL_RETENTION_MS
from dataplane.names import (
    AUDIT_PARTITIONS,
    AUDIT_TOPIC,
    CONTROL_TOPIC,
    HEARTBEAT_TOPIC,
    INPUTS_OF,
    LANE_KINDS,
    LOOKUP_TOPIC,
    OPERATIONAL_TOPIC,
    QUERY_INPUTS,
    PartitionKey,
    Purpose,
    lane_group,
    query_group,
)
from mgmt.pipes.topics import COMPACTED, HOUR_MS, TopicPlan, TopicShape, topic_config

REQUEST_S: Final = 10.0
GROUP_IS_RUNNING: Final = frozenset(
    {KafkaError.UNKNOWN_MEMBER_ID, KafkaError.ILLEGAL_GENERATION, KafkaError.REBALANCE_IN_PROGRESS}
)
log = structlog.get_logger(__name__)


class TopicsNotReadyError(Exception):
    """Topics were created, but the brokers do not serve them yet; the next tick checks again."""


class GroupIsRunningError(Exception):
    """The group has running lanes, so it takes no first offsets for a topic new to them; they must end first."""


class ExistingTopic(Struct, frozen=True):
    """A topic as Kafka reports it; `topic_id` changes when the topic is deleted and recreated."""

    name: str
    topic_id: str
    partitions: int


def cluster_plans(shape: TopicShape) -> list[TopicPlan]:
    """Return the topics that all cells share. Control and look-ups are compacted, with one partition for one order."""
    control = topic_config(shape, -1) | COMPACTED
    audit = topic_config(shape, AUDIT_RETENTION_MS)
    operational = topic_config(shape, OPERATIONAL_RETENTION_MS)
    heartbeats = topic_config(shape, HEARTBEAT_RETENTION_MS) | {"segment.ms": str(HOUR_MS)}
    return [
        TopicPlan(CONTROL_TOPIC, 1, shape.replication, control),
        TopicPlan(AUDIT_TOPIC, AUDIT_PARTITIONS, shape.replication, audit),
        TopicPlan(HEARTBEAT_TOPIC, 1, shape.replication, heartbeats),
        TopicPlan(LOOKUP_TOPIC, 1, shape.replication, control),
        TopicPlan(OPERATIONAL_TOPIC, 1, shape.replication, operational),
    ]


def first_readers(plans: Mapping[Purpose, TopicPlan], cell: str) -> dict[str, list[TopicPlan]]:
    """Return the topics that each consumer group of a cell reads, by group: those of lanes and of queries."""
    lanes = {lane_group(cell, kind): [plans[purpose] for purpose in INPUTS_OF[kind]] for kind in LANE_KINDS}
    return lanes | {query_group(cell, name): [plans[purpose]] for name, purpose in QUERY_INPUTS.items()}


class TopicCreator:
    """Creates topics that are absent, repairs configuration that has drifted, and reads topic ids."""

    def __init__(self, kafka: str) -> None:
        self._clients = kafka_clients(kafka)

    def find(self, names: Iterable[str]) -> dict[str, ExistingTopic]:
        """Return those of `names` that exist, by name. Raises KafkaException."""
        found = {}
        described = self._clients.admin().describe_topics(TopicCollection(list(names)), request_timeout=REQUEST_S)
        for name, future in described.items():
            topic = _result_or(future, KafkaError.UNKNOWN_TOPIC_OR_PART)
            if topic is not None:
                found[name] = ExistingTopic(name, str(topic.topic_id), len(topic.partitions))
        return found

    def ensure(self, plans: Iterable[TopicPlan]) -> dict[str, ExistingTopic]:
        """Create absent topics and repair drifted configuration; return all by name. Safe to run twice at once.

        Raises TopicsNotReadyError if the brokers do not serve a new topic in time, and KafkaException.
        """
        wanted = {plan.name: plan for plan in plans}
        if not wanted:
            return {}
        found = self.find(wanted)
        missing = [plan for name, plan in wanted.items() if name not in found]
        if missing:
            self._create(missing)
        self._correct_settings([wanted[name] for name in found])
        return found | self._see([plan.name for plan in missing])

    def _create(self, plans: list[TopicPlan]) -> None:
        new = [NewTopic(p.name, p.partitions, p.replication, config=p.config) for p in plans]
        created = self._clients.admin().create_topics(new, operation_timeout=REQUEST_S, request_timeout=REQUEST_S)
        for future in created.values():
            _result_or(future, KafkaError.TOPIC_ALREADY_EXISTS)

    def _see(self, names: list[str]) -> dict[str, ExistingTopic]:
        """Wait until the brokers serve the new topics: Kafka's controller answers before they do."""
        deadline = time.monotonic() + REQUEST_S
        found: dict[str, ExistingTopic] = {}
        while names:
            found = self.find(names)
            if len(found) == len(names) and self._are_led(found.values()):
                break
            if time.monotonic() > deadline:
                raise TopicsNotReadyError(f"created, but not served after {REQUEST_S} s: {sorted(names)}")
            time.sleep(0.02)
        return found

    def _are_led(self, topics: Iterable[ExistingTopic]) -> bool:
        """Return True if every partition's leader answers for it."""
        try:
            self.ends((topic.name, number) for topic in topics for number in range(topic.partitions))
        except KafkaException:
            return False
        return True

    def _correct_settings(self, plans: list[TopicPlan]) -> None:
        if not plans:
            return
        resources = [ConfigResource(ResourceType.TOPIC, plan.name) for plan in plans]
        described = self._clients.admin().describe_configs(resources, request_timeout=REQUEST_S)
        now = {resource.name: future.result() for resource, future in described.items()}
        drifted = [
            ConfigResource(
                ResourceType.TOPIC,
                plan.name,
                incremental_configs=[ConfigEntry(*one, incremental_operation=AlterConfigOpType.SET) for one in wrong],
            )
            for plan in plans
            if (wrong := [(k, v) for k, v in plan.config.items() if now[plan.name][k].value != v])
        ]
        if drifted:
            for future in self._clients.admin().incremental_alter_configs(drifted, request_timeout=REQUEST_S).values():
                future.result()

    def ends(self, places: Iterable[PartitionKey]) -> dict[PartitionKey, int]:
        """Return the offset after the last record of each (topic, partition)."""
        return self._clients.ends(places, REQUEST_S)

    def commit_first_offsets(
        self,
        groups: Mapping[str, Sequence[ExistingTopic]],
        passed: Mapping[PartitionKey, int] = MappingProxyType({}),
    ) -> None:
        """Commit, for each group, the first offset of each partition of its topics that has no committed offset.

        Kafka drops the offsets of a group that has had no member for a week (KIP-211). So where the ledger knows how
        far the group's lanes have settled a partition (`passed`), that offset is committed instead: a week of messages
        is not delivered twice, and messages that the topic has dropped meanwhile are not skipped silently, because the
        lanes stop there and report it.

        Lanes do not guess (auto.offset.reset=error). A group with running lanes takes no such commit: raises
        GroupIsRunningError, unless they committed meanwhile. A consumer that does not join the group commits: the admin
        client's call may end the process (docs/kafka-clients.md). All groups are handled at once, because a consumer
        waits half a second for its coordinator on its first request.
        """
        with ThreadPoolExecutor(max(1, len(groups))) as pool:
            list(pool.map(partial(self._commit_first, passed), groups, groups.values()))

    def _commit_first(self, passed: Mapping[PartitionKey, int], group: str, topics: Sequence[ExistingTopic]) -> None:
        deadline = time.monotonic() + REQUEST_S
        while True:
            try:
                self._commit_start(group, topics, passed)
                return
            except KafkaException as exc:  # a new topic has no leader for a moment, a new group no coordinator
                if exc.args[0].code() in GROUP_IS_RUNNING:
                    raise GroupIsRunningError(f"{group} runs without {', '.join(t.name for t in topics)}") from exc
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    def _commit_start(self, group: str, topics: Sequence[ExistingTopic], passed: Mapping[PartitionKey, int]) -> None:
        partitions = [(topic.name, number) for topic in topics for number in range(topic.partitions)]
        committed = self._clients.committed(group, partitions, REQUEST_S)
        missing = [partition for partition, offset in committed.items() if offset < 0]
        known = {partition: passed[partition] for partition in missing if partition in passed}
        for (topic, partition), offset in known.items():
            log.warning("recommitted settled offset", topic=topic, partition=partition, offset=offset)
        unknown = [partition for partition in missing if partition not in known]
        first = known | self._clients.starts(unknown, REQUEST_S, group=group)
        if first:
            offsets = [TopicPartition(*partition, offset) for partition, offset in first.items()]
            self._clients.group_reader(group).commit(offsets=offsets, asynchronous=False)


def _result_or(future: "Future[Any]", harmless: int) -> Any:
    """Return the future's result, or None if it failed with the error code `harmless`."""
    try:
        return future.result()
    except KafkaException as exc:
        if exc.args[0].code() != harmless:
            raise
        return None
