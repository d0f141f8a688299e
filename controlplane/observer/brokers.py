"""Check Kafka's brokers and partitions, and store the result for the status board."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

import structlog
from confluent_kafka import KafkaException
from msgspec import Struct

from controlplane.kafka import KafkaClients
from mgmt.models import KafkaCheck

ANSWER_S: Final = 3.0
READER: Final = "penstock-broker-check"  # a group that no consumer joins
EXAMPLES: Final = 10
# Topics of other systems on the same cluster are not ours to watch; the broker's own hold our committed offsets.
PREFIXES: Final = ("penstock.", "__")
_State = KafkaCheck.State
log = structlog.get_logger(__name__)


class BrokerAnswer(Struct, frozen=True):
    """Brokers and partitions as one response of a broker describes them. `brokers`: address of each that is alive."""

    brokers: Mapping[int, str]
    partitions: int = 0
    under_replicated: int = 0
    leaderless: int = 0
    examples: tuple[str, ...] = ()
    missing: frozenset[int] = frozenset()


def check_kafka(clients: KafkaClients, now: datetime) -> str:
    """Ask a broker about all of them and store the response; return the state of the cluster.

    Safe to run twice: a state is stored with the time since which it lasts.
    """
    row = KafkaCheck.objects.filter(cluster=KafkaCheck.MAIN).first()
    try:
        answer, error = describe(clients.metadata(READER, ANSWER_S)), ""
    except KafkaException as exc:
        answer, error = None, exc.args[0].str()
    state = state_of(answer)
    changed: dict[str, Any] = {"at": now, "state": state, "error": error[:200]}
    if row is None or row.state != state:
        changed["since"] = now
        log.info("kafka checked", state=state, error=error)
    if answer is not None:
        known = {one["id"]: one["address"] for one in row.brokers} if row else {}
        changed |= {
            "brokers": broker_list(answer, known),
            "partitions": answer.partitions,
            "under_replicated": answer.under_replicated,
            "leaderless": answer.leaderless,
            "examples": list(answer.examples),
        }
    KafkaCheck.objects.update_or_create(cluster=KafkaCheck.MAIN, defaults=changed)
    return state


def state_of(answer: BrokerAnswer | None) -> _State:
    """Return the state of the cluster; None stands for no response."""
    if answer is None:
        return _State.UNREACHABLE
    return _State.DEGRADED if answer.missing or answer.under_replicated or answer.leaderless else _State.HEALTHY


def describe(metadata: Any) -> BrokerAnswer:
    """Return the brokers and our partitions from the client's metadata (confluent_kafka.admin.ClusterMetadata)."""
    alive = {number: f"{broker.host}:{broker.port}" for number, broker in metadata.brokers.items()}
    ours = sorted(_partitions(metadata))
    leaderless = [name for name, one in ours if one.leader not in alive]
    lagging = [name for name, one in ours if one.leader in alive and len(one.isrs) < len(one.replicas)]
    return BrokerAnswer(
        brokers=alive,
        partitions=len(ours),
        under_replicated=sum(len(one.isrs) < len(one.replicas) for _, one in ours),
        leaderless=len(leaderless),
        examples=tuple((leaderless + lagging)[:EXAMPLES]),
        missing=frozenset(number for _, one in ours for number in one.replicas) - alive.keys(),
    )


def broker_list(answer: BrokerAnswer, known: Mapping[int, str]) -> list[dict[str, Any]]:
    """Return the brokers by id: those that are alive, and those that only have replicas, with their known address."""
    rows = [{"id": number, "address": address, "alive": True} for number, address in answer.brokers.items()]
    rows += [{"id": number, "address": known.get(number, ""), "alive": False} for number in answer.missing]
    return sorted(rows, key=lambda one: int(str(one["id"])))


def _partitions(metadata: Any) -> Iterable[tuple[str, Any]]:
    for topic, found in metadata.topics.items():
        if topic.startswith(PREFIXES):
            for number, partition in found.partitions.items():
                yield f"{topic}/{number}", partition
