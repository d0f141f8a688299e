"""Which topics are mirrored, how, and which groups read them. Pure."""

import re
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from msgspec import Struct, structs

from dataplane.names import (
    HEARTBEAT_TOPIC,
    INPUTS_OF,
    MIRROR_TOPIC,
    OWN_PREFIX,
    PURPOSES,
    QUERY_INPUTS,
    PartitionKey,
    lane_group,
    output_topic,
    query_group,
)

OUTPUT_PREFIX: Final = output_topic("", "").rstrip(".") + "."
OUTPUTS: Final = "penstock.out"  # stands for all output topics in metrics, whose labels name no pipe
# Records that are worthless elsewhere: their topics are created on the standby cluster and stay empty.
EPHEMERAL: Final = frozenset({"tail"})
TIMESTAMP_TYPE: Final = "message.timestamp.type"
APPEND_TIME: Final = "LogAppendTime"
ORIGINAL_TIME: Final = "CreateTime"
_CELL_TOPIC: Final = re.compile(r"penstock\.(?P<cell>[^.]+)\.(?P<purpose>[a-z0-9-]+)\.g(?P<generation>\d+)")


class TopicLayout(Struct, frozen=True):
    """A topic of the active cluster: partitions, replicas, and the settings that were made for it."""

    name: str
    partitions: int
    replication: int
    config: dict[str, str]

    @property
    def is_compacted(self) -> bool:
        """True if its records are states by key: they are copied in order, but not at their offsets."""
        return "compact" in self.config.get("cleanup.policy", "")

    @property
    def is_copied(self) -> bool:
        """True if its records are copied."""
        return self.name != HEARTBEAT_TOPIC and purpose_of(self.name) not in EPHEMERAL

    @property
    def of_copy(self) -> "TopicLayout":
        """The topic of its copy: records keep the time at which the active cluster stored them."""
        if self.config.get(TIMESTAMP_TYPE) != APPEND_TIME:
            return self
        return structs.replace(self, config=self.config | {TIMESTAMP_TYPE: ORIGINAL_TIME})

    @property
    def places(self) -> list[PartitionKey]:
        """Its partitions."""
        return [(self.name, number) for number in range(self.partitions)]


class CellTopic(NamedTuple):
    """Topic of a cell, by the parts of its name."""

    cell: str
    purpose: str
    generation: int


def is_own_topic(name: str) -> bool:
    """Return True for a topic of Penstock that the standby cluster must have, too."""
    return name.startswith(OWN_PREFIX) and name != MIRROR_TOPIC


def parse_cell_topic(name: str) -> CellTopic | None:
    """Return the parts of the name of a cell's topic; None for all other topics."""
    found = _CELL_TOPIC.fullmatch(name)
    if found is None or name.startswith(OUTPUT_PREFIX) or found["purpose"] not in PURPOSES:
        return None
    return CellTopic(found["cell"], found["purpose"], int(found["generation"]))


def purpose_of(name: str) -> str:
    """Return the purpose of a cell's topic; "" for all other topics."""
    cell_topic_name = parse_cell_topic(name)
    return cell_topic_name.purpose if cell_topic_name else ""


def metric_label(name: str) -> str:
    """Return the name under which metrics count a topic."""
    return OUTPUTS if name.startswith(OUTPUT_PREFIX) else name


def groups_of(layouts: Iterable[TopicLayout]) -> dict[str, list[PartitionKey]]:
    """Return the partitions that each group of lanes or of a streaming query reads, by group."""
    found: dict[str, list[PartitionKey]] = {}
    for layout in layouts:
        topic = parse_cell_topic(layout.name)
        for group in _readers(topic) if topic else ():
            found.setdefault(group, []).extend(layout.places)
    return found


def _readers(topic: CellTopic) -> list[str]:
    lanes = [lane_group(topic.cell, kind) for kind, purposes in INPUTS_OF.items() if topic.purpose in purposes]
    return lanes + [
        query_group(topic.cell, query) for query, purpose in QUERY_INPUTS.items() if topic.purpose == purpose
    ]


def differing_layouts(active: Mapping[str, TopicLayout], standby: Mapping[str, int]) -> list[str]:
    """Return why a standby cluster cannot be mirrored into: topics with more partitions than the active ones."""
    return [
        f"{name} has {standby[name]} partitions, on the active cluster {layout.partitions}"
        for name, layout in sorted(active.items())
        if standby.get(name, 0) > layout.partitions
    ]


def ingest_topics(names: Iterable[str]) -> list[str]:
    """Return those of `names` that are ingest topics of cells, in order."""
    return sorted(name for name in names if purpose_of(name) == "ingest")
