"""Names shared by all planes: topics, consumer groups, lanes and nodes. Constants and string rules only."""

from functools import cache
from typing import Final, Literal, get_args

WIRE_VERSION: Final = 1
EVENTS_PATH: Final = "/v1/events"  # of ingest
ERRORS_PATH: Final = "/help/errors/"  # of the console, before the code of an error
WEBHOOK_PATH: Final = "/v1/hooks/"  # of ingest, before the secret part of a source's URL

# Cluster-wide topics. No underscores: `.` and `_` collide in Kafka's metric names (KAFKA-13743).
CONTROL_TOPIC: Final = "penstock.control"
AUDIT_TOPIC: Final = "penstock.audit"
AUDIT_PARTITIONS: Final = 4
HEARTBEAT_TOPIC: Final = "penstock.heartbeats"
LOOKUP_TOPIC: Final = "penstock.lookups"
OPERATIONAL_TOPIC: Final = "penstock.operational-events"
MIRROR_TOPIC: Final = "penstock.mirror"  # of the standby cluster alone: progress of the mirror, and its promotion
OWN_PREFIX: Final = "penstock."  # of all topics of Penstock

PartitionKey = tuple[str, int]  # topic, partition

Purpose = Literal[
    "ingest",
    "egress",
    "retry-in",
    "delay-10s",
    "delay-1m",
    "delay-5m",
    "delay-30m",
    "delay-2h",
    "delay-10h",
    "retry-out",
    "dead",
    "held",
    "attempts",
    "signals",
    "blocked",
    "slow",
    "tail",
    "dedup",
    "taps",
    "panes",
    "lake",
    "process-slow",
    "sequence",
    "bulk",
]
PURPOSES: Final[tuple[Purpose, ...]] = get_args(Purpose)
# Topics with one partition, because their readers need one total order.
ONE_PARTITION: Final[frozenset[Purpose]] = frozenset({"attempts", "signals", "blocked", "tail", "dedup", "sequence"})

# The retrier's delay tiers, in seconds. All messages of a tier wait equally long, so the first in is the first due.
DELAYS_S: Final[dict[Purpose, int]] = {
    "delay-10s": 10,
    "delay-1m": 60,
    "delay-5m": 300,
    "delay-30m": 1_800,
    "delay-2h": 7_200,
    "delay-10h": 36_000,
}

LaneKind = Literal["process", "transmit", "transmit-retry", "retrier", "transmit-slow", "process-slow"]
LANE_KINDS: Final[tuple[LaneKind, ...]] = get_args(LaneKind)

INGEST_GROUP: Final = "ingest"  # the ingest replicas: a group like the lanes of one kind, but of no cell
RELEASE_VARIABLE: Final = "PENSTOCK_RELEASE"  # in the environment of an ingest replica: the release that it runs
GroupKind = LaneKind | Literal["ingest"]

# The topics that each kind of lane reads.
INPUTS_OF: Final[dict[LaneKind, tuple[Purpose, ...]]] = {
    "process": ("ingest",),
    "transmit": ("egress",),
    "transmit-retry": ("retry-out",),
    "transmit-slow": ("slow",),
    "process-slow": ("process-slow",),
    "retrier": ("retry-in", *DELAYS_S),
}

# The Structured Streaming queries that may run next to a cell's lanes, and the topic that each reads.
QUERY_INPUTS: Final[dict[str, Purpose]] = {
    "dedup": "dedup",
    "windows": "taps",
    "lake": "lake",
    "sequence": "sequence",
    "bulk": "bulk",
}

ALL_KEYS_PERCENT: Final = 100  # share of a pipe's keys, in percent
UNKNOWN_SHARE: Final = 0  # stands for a share that is not known yet
SEQUENCE_PREFIX: Final = "sequence:"  # of the node of a source's sequence: each message is also counted elsewhere
REPLAY_ID_PREFIX: Final = "replay_"  # of the ids of replays; no pipe has such an id
RAMP_PREFIX: Final = "ramp:"  # of names that are not nodes: each message is also counted under its real node

# The stages of process, in order; transform and transmit are measured per destination.
PROCESS_NODES: Final = ("normalize", "enrich", "route", "transform")
ENTRANCE: Final = PROCESS_NODES[0]  # node at which a pipe is held when too many messages fail in its steps


def replica_name(number: int) -> str:
    """Return the name of an ingest replica; they are numbered from 1 on."""
    return f"{INGEST_GROUP}-{number}"


def cell_topic(cell: str, purpose: Purpose, generation: int) -> str:
    """Return the topic of a cell for one purpose: `penstock.<cell>.<purpose>.g<generation>`."""
    return f"penstock.{cell}.{purpose}.g{generation}"


def query_group(cell: str, query: str) -> str:
    """Return the consumer group under which a query records its offsets. No consumer joins it."""
    return f"penstock.{cell}.{query}"


def output_topic(pipe: str, destination: str) -> str:
    """Return the topic of a `topic` destination: `penstock.out.<pipe>.<destination>`, with `_` as `-`."""
    return f"penstock.out.{pipe.replace('_', '-')}.{destination}"


def lane_group(cell: str, kind: LaneKind) -> str:
    """Return the consumer group shared by all lanes of one kind in a cell."""
    return f"penstock.{cell}.{kind}"


def is_replay(account: str) -> bool:
    """Return True if the ledger's account is a replay's, not a pipe's. It has no seals, rollups, losses or alerts."""
    return account.startswith(REPLAY_ID_PREFIX)


@cache
def ramp_node(share: int, revision: int) -> str:
    """Return the node name under which one revision's messages are counted in a ramp step; `share`: percent of keys."""
    return f"{RAMP_PREFIX}{share}:{revision}"


@cache
def window_node(window: str) -> str:
    """Return the node name of a window, under which late events are counted."""
    return f"window:{window}"


@cache
def sequence_node(source: str) -> str:
    """Return the node name of a source's sequence, under which its compared events are counted."""
    return f"{SEQUENCE_PREFIX}{source}"


@cache
def transform_node(destination: str) -> str:
    """Return the node name of the transform stage of one destination."""
    return f"transform:{destination}"


@cache
def transmit_node(destination: str) -> str:
    """Return the node name of the delivery to one destination."""
    return f"transmit:{destination}"
