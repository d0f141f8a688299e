"""The check of Kafka's brokers: its row for the status board, while they answer and while they do not."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from controlplane.observer.brokers import check_kafka
from mgmt.models import KafkaCheck

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


class Cluster:
    """Clients whose brokers have one partition; `isrs` are its in-sync replicas, [] if no broker answers."""

    def __init__(self) -> None:
        self.alive: tuple[int, ...] = (1, 2)
        self.isrs = [1, 2]

    def metadata(self, _group: str, _timeout_s: float) -> Any:
        if not self.alive:
            raise KafkaException(KafkaError(KafkaError._TRANSPORT, "all brokers are down"))
        partition = SimpleNamespace(leader=self.isrs[0], replicas=[1, 2], isrs=self.isrs)
        return SimpleNamespace(
            brokers={number: SimpleNamespace(host=f"kafka-{number}", port=9092) for number in self.alive},
            topics={"penstock.audit": SimpleNamespace(partitions={0: partition})},
        )


def checked(cluster: Cluster, minute: int) -> KafkaCheck:
    check_kafka(cluster, NOW + timedelta(minutes=minute))  # type: ignore[arg-type]
    return KafkaCheck.objects.get()


def test_answer_is_stored_with_the_time_since_which_the_state_lasts():
    cluster = Cluster()
    checked(cluster, 0)
    row = checked(cluster, 1)
    assert (row.state, row.since, row.at) == ("healthy", NOW, NOW + timedelta(minutes=1))
    cluster.alive, cluster.isrs = (1,), [1]
    row = checked(cluster, 2)
    assert (row.state, row.since, row.under_replicated) == ("degraded", NOW + timedelta(minutes=2), 1)
    assert row.brokers == [
        {"id": 1, "address": "kafka-1:9092", "alive": True},
        {"id": 2, "address": "kafka-2:9092", "alive": False},
    ]


def test_silence_keeps_the_last_answer_and_says_why():
    cluster = Cluster()
    checked(cluster, 0)
    cluster.alive = ()
    row = checked(cluster, 1)
    assert (row.state, row.error, row.partitions) == ("unreachable", "all brokers are down", 1)
    assert len(row.brokers) == 2
    cluster.alive = (1, 2)
    row = checked(cluster, 2)
    assert (row.state, row.error) == ("healthy", "")
