"""Topics that all cells share, who reads a cell's, and an idempotent `ensure` that makes and checks topics.

It never makes anew a topic that was already bound to an id: offsets of the old one would be applied to the new.
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

from controlplane.kafka import Place, kafka_clients
from controlplane.settings import AUDIT_RETENTION_MS, HEARTBEAT_RETENTION_MS
from dataplane.names import (
    AUDIT_TOPIC,
    CONTROL_TOPIC,
    HEARTBEAT_TOPIC,
    INPUTS_OF,
    LANE_KINDS,
    LOOKUP_TOPIC,
    QUERY_INPUTS,
    Purpose,
    lane_group,
    query_group,
)
from mgmt.provisioning.topics import COMPACTED, HOUR_MS, TopicPlan, TopicShape, topic_config

AUDIT_PARTITIONS: Final = 4
REQUEST_S: Final = 10.0
GROUP_IS_RUNNING: Final = frozenset(
    {KafkaError.UNKNOWN_MEMBER_ID, KafkaError.ILLEGAL_GENERATION, KafkaError.REBALANCE_IN_PROGRESS}
)
log = structlog.get_logger(__name__)


class TopicsNotReadyError(Exception):
    """Topics were asked for and are not there yet; the next tick looks again."""


class GroupIsRunningError(Exception):
    """Lanes hold the group and refuse first offsets for a topic that is new to them; they have to end first."""


class FoundTopic(Struct, frozen=True):
    """A topic as Kafka has it; `topic_id` changes when it is deleted and made anew."""

    name: str
    topic_id: str
    partitions: int


def cluster_plans(shape: TopicShape) -> list[TopicPlan]:
    """The topics all cells share. Control and look-ups are compacted, of one partition for the sake of one order."""
    control = topic_config(shape, -1) | COMPACTED
    audit = topic_config(shape, AUDIT_RETENTION_MS)
    heartbeats = topic_config(shape, HEARTBEAT_RETENTION_MS) | {"segment.ms": str(HOUR_MS)}
    return [
        TopicPlan(CONTROL_TOPIC, 1, shape.replication, control),
        TopicPlan(AUDIT_TOPIC, AUDIT_PARTITIONS, shape.replication, audit),
        TopicPlan(HEARTBEAT_TOPIC, 1, shape.replication, heartbeats),
        TopicPlan(LOOKUP_TOPIC, 1, shape.replication, control),
    ]


def first_readers(plans: Mapping[Purpose, TopicPlan], cell: str) -> dict[str, list[TopicPlan]]:
    """Each group of a cell, of lanes and of queries, with the topics that it reads."""
    lanes = {lane_group(cell, kind): [plans[purpose] for purpose in INPUTS_OF[kind]] for kind in LANE_KINDS}
    return lanes | {query_group(cell, name): [plans[purpose]] for name, purpose in QUERY_INPUTS.items()}


class TopicAdmin:
    """Makes topics that are absent, mends configuration that drifted, reads back ids."""

    def __init__(self, kafka: str) -> None:
        self._clients = kafka_clients(kafka)

    def find(self, names: Iterable[str]) -> dict[str, FoundTopic]:
        """Those of `names` that exist."""
        found = {}
        described = self._clients.admin().describe_topics(TopicCollection(list(names)), request_timeout=REQUEST_S)
        for name, future in described.items():
            topic = _result_or(future, KafkaError.UNKNOWN_TOPIC_OR_PART)
            if topic is not None:
                found[name] = FoundTopic(name, str(topic.topic_id), len(topic.partitions))
        return found

    def ensure(self, plans: Iterable[TopicPlan]) -> dict[str, FoundTopic]:
        """Make what is absent and mend what drifted; who else does so at the same time does no harm."""
        wanted = {plan.name: plan for plan in plans}
        if not wanted:
            return {}
        found = self.find(wanted)
        missing = [plan for name, plan in wanted.items() if name not in found]
        if missing:
            self._create(missing)
        self._mend([wanted[name] for name in found])
        return found | self._see([plan.name for plan in missing])

    def _create(self, plans: list[TopicPlan]) -> None:
        new = [NewTopic(p.name, p.partitions, p.replication, config=p.config) for p in plans]
        made = self._clients.admin().create_topics(new, operation_timeout=REQUEST_S, request_timeout=REQUEST_S)
        for future in made.values():
            _result_or(future, KafkaError.TOPIC_ALREADY_EXISTS)

    def _see(self, names: list[str]) -> dict[str, FoundTopic]:
        """Wait until the brokers serve the new topics: the controller's answer comes before they do."""
        deadline = time.monotonic() + REQUEST_S
        found: dict[str, FoundTopic] = {}
        while names:
            found = self.find(names)
            if len(found) == len(names) and self._are_led(found.values()):
                break
            if time.monotonic() > deadline:
                raise TopicsNotReadyError(f"made, but not served after {REQUEST_S} s: {sorted(names)}")
            time.sleep(0.02)
        return found

    def _are_led(self, topics: Iterable[FoundTopic]) -> bool:
        """Return True if every partition's leader answers for it."""
        try:
            self.ends((topic.name, number) for topic in topics for number in range(topic.partitions))
        except KafkaException:
            return False
        return True

    def _mend(self, plans: list[TopicPlan]) -> None:
        if not plans:
            return
        resources = [ConfigResource(ResourceType.TOPIC, plan.name) for plan in plans]
        described = self._clients.admin().describe_configs(resources, request_timeout=REQUEST_S)
        now = {resource.name: future.result() for resource, future in described.items()}
        drifted = [
            ConfigResource(ResourceType.TOPIC, plan.name, incremental_configs=[_set(k, v) for k, v in wrong])
            for plan in plans
            if (wrong := [(k, v) for k, v in plan.config.items() if now[plan.name][k].value != v])
        ]
        if drifted:
            for future in self._clients.admin().incremental_alter_configs(drifted, request_timeout=REQUEST_S).values():
                future.result()

    def ends(self, places: Iterable[Place]) -> dict[Place, int]:
        """Return the offset after the last record of each (topic, partition)."""
        return self._clients.ends(places, REQUEST_S)

    def commit_first_offsets(
        self, groups: Mapping[str, Sequence[FoundTopic]], passed: Mapping[Place, int] = MappingProxyType({})
    ) -> None:
        """Give each group a committed offset on each partition of its topics where it has none: the start of it.

        Kafka forgets the offsets of a group that nobody has been in for a week (KIP-211). So where the books know how
        far its lanes have settled a partition (`passed`), it is that: neither is a week sent again, nor is anything
        passed over that the topic has dropped meanwhile, for there the lanes stop and say so.

        Lanes refuse to guess (auto.offset.reset=error). A group whose lanes are running takes no such commit: raises
        GroupIsRunningError, unless they made it themselves meanwhile. A consumer that does not join the group commits:
        the admin client's call may end the process (decision 0661). All groups at once: a consumer waits half a second
        for its coordinator when it asks for the first time.
        """
        with ThreadPoolExecutor(max(1, len(groups))) as pool:
            list(pool.map(partial(self._commit_first, passed), groups, groups.values()))

    def _commit_first(self, passed: Mapping[Place, int], group: str, topics: Sequence[FoundTopic]) -> None:
        deadline = time.monotonic() + REQUEST_S
        while True:
            try:
                self._commit_start(group, topics, passed)
                return
            except KafkaException as exc:  # for a moment a new topic has no leader, a new group no coordinator
                if exc.args[0].code() in GROUP_IS_RUNNING:
                    raise GroupIsRunningError(f"{group} runs without {', '.join(t.name for t in topics)}") from exc
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    def _commit_start(self, group: str, topics: Sequence[FoundTopic], passed: Mapping[Place, int]) -> None:
        places = [(topic.name, number) for topic in topics for number in range(topic.partitions)]
        committed = self._clients.committed(group, places, REQUEST_S)
        missing = [place for place, offset in committed.items() if offset < 0]
        known = {place: passed[place] for place in missing if place in passed}
        for (topic, partition), offset in known.items():
            log.warning("committed anew", topic=topic, partition=partition, offset=offset)
        unknown = [place for place in missing if place not in known]
        first = known | (self._clients.starts(unknown, REQUEST_S, group=group))
        if first:
            offsets = [TopicPartition(*place, offset) for place, offset in first.items()]
            self._clients.group_reader(group).commit(offsets=offsets, asynchronous=False)


def _set(name: str, value: str) -> Any:
    return ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)


def _result_or(future: "Future[Any]", harmless: int) -> Any:
    """The future's result, or None if it failed with the one error that does not matter here."""
    try:
        return future.result()
    except KafkaException as exc:
        if exc.args[0].code() != harmless:
            raise
        return None
