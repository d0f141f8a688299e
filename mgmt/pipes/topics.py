"""Desired topics of cells and of destinations of type `topic`. Pure."""

from typing import Final

from msgspec import Struct

from dataplane.names import DELAYS_S, ONE_PARTITION, PURPOSES, Purpose, cell_topic, output_topic
from dataplane.record_limits import TOPIC_MAX_BYTES
from dataplane.spec import TopicDestination

HOUR_MS: Final = 3_600_000
DAY_MS: Final = 24 * HOUR_MS

# The longest retry horizon of a spec is 7 days; waiting and ended messages must outlive it by 7 more (lanes.md).
RETENTION_MS: Final[dict[Purpose, int]] = {
    "ingest": 7 * DAY_MS,
    "egress": 7 * DAY_MS,
    "slow": 7 * DAY_MS,
    "process-slow": 7 * DAY_MS,
    "bulk": 7 * DAY_MS,
    "retry-in": 14 * DAY_MS,
    **dict.fromkeys(DELAYS_S, 14 * DAY_MS),
    "retry-out": 14 * DAY_MS,
    "dead": 14 * DAY_MS,
    "held": 14 * DAY_MS,
    "lake": 14 * DAY_MS,
    "attempts": 2 * DAY_MS,
    "signals": -1,  # compacted
    "tail": HOUR_MS,  # copies for live tails
    "dedup": 7 * DAY_MS,
    "taps": 7 * DAY_MS,
    "sequence": 7 * DAY_MS,
    "panes": 14 * DAY_MS,  # compacted as well: a key without an event for so long is not looked up
    "blocked": 14 * DAY_MS,  # compacted as well: a message that blocked a key has ended long before
}
COMPACTED: Final = {"cleanup.policy": "compact", "segment.ms": str(HOUR_MS)}


class TopicShape(Struct, frozen=True):
    """Shape of new topics: partitions (of a cell's topics), replicas, in-sync replicas for an ACK, and retention.

    taps_partitions: of the `taps` topic; the drivers of releases before 0475 read only one
    """

    partitions: int
    replication: int
    min_isr: int
    retention_ms: dict[Purpose, int]
    taps_partitions: int = 1


class TopicPlan(Struct, frozen=True):
    """Desired state of one topic."""

    name: str
    partitions: int
    replication: int
    config: dict[str, str]


def cell_plans(cell: str, generation: int, shape: TopicShape) -> dict[Purpose, TopicPlan]:
    """Return the desired topics of one cell. Some have one partition, so that all readers see the same order."""
    return {
        purpose: TopicPlan(
            name=cell_topic(cell, purpose, generation),
            partitions=_partitions_of(purpose, shape),
            replication=shape.replication,
            config=topic_config(shape, shape.retention_ms[purpose]) | _cleaned(purpose),
        )
        for purpose in PURPOSES
    }


def _partitions_of(purpose: Purpose, shape: TopicShape) -> int:
    if purpose == "taps":
        return shape.taps_partitions
    return 1 if purpose in ONE_PARTITION else shape.partitions


def _cleaned(purpose: Purpose) -> dict[str, str]:
    match purpose:
        case "signals":
            return COMPACTED
        case "tail":
            return {"segment.ms": str(HOUR_MS)}
        case "blocked" | "panes":
            return COMPACTED | {"cleanup.policy": "compact,delete"}
    return {}


def output_plan(pipe: str, name: str, to: TopicDestination, shape: TopicShape) -> TopicPlan:
    """Return the desired topic of a destination of type `topic`."""
    config = topic_config(shape, to.retention_h * HOUR_MS)
    if to.compacted:
        config |= COMPACTED | {"retention.ms": "-1", "delete.retention.ms": str(to.retention_h * HOUR_MS)}
    return TopicPlan(output_topic(pipe, name), to.partitions, shape.replication, config)


def topic_config(shape: TopicShape, retention_ms: int) -> dict[str, str]:
    """Return the configuration that all topics share: replicas, timestamps, elections, the record size limit."""
    return {
        "cleanup.policy": "delete",
        "retention.ms": str(retention_ms),
        "min.insync.replicas": str(shape.min_isr),
        "unclean.leader.election.enable": "false",
        "message.timestamp.type": "LogAppendTime",  # a sender's clock must not decide what retention deletes
        "max.message.bytes": str(TOPIC_MAX_BYTES),
    }
