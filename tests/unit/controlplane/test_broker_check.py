"""The check of Kafka: brokers, leaders and replicas of our partitions, from a client's metadata."""

from types import SimpleNamespace
from typing import Any

import pytest

from controlplane.observer.brokers import broker_list, describe, state_of
from mgmt.models import KafkaCheck

State = KafkaCheck.State


def metadata(topics: dict[str, list[tuple[int, list[int], list[int]]]], alive: tuple[int, ...] = (1, 2, 3)) -> Any:
    """Return metadata of partitions as (leader, replicas, in-sync replicas)."""
    return SimpleNamespace(
        brokers={number: SimpleNamespace(host=f"kafka-{number}", port=9092) for number in alive},
        topics={
            name: SimpleNamespace(
                partitions={
                    number: SimpleNamespace(leader=leader, replicas=replicas, isrs=isrs)
                    for number, (leader, replicas, isrs) in enumerate(partitions)
                }
            )
            for name, partitions in topics.items()
        },
    )


def test_cluster_with_all_replicas_in_sync_is_healthy():
    topics = {"penstock.control": [(1, [1, 2], [1, 2])], "__consumer_offsets": [(2, [2, 3], [3, 2])]}
    answer = describe(metadata(topics))
    assert (answer.partitions, answer.under_replicated, answer.leaderless, answer.missing) == (2, 0, 0, frozenset())
    assert state_of(answer) == State.HEALTHY


@pytest.mark.parametrize(
    ("partition", "alive", "counts"),
    [
        ((1, [1, 2], [1]), (1, 2), (1, 0, set())),
        ((-1, [1, 2], []), (1, 2), (1, 1, set())),
        ((1, [1, 2], [1]), (1,), (1, 0, {2})),
        ((2, [1, 2], [2]), (1,), (1, 1, {2})),
    ],
    ids=["replica behind", "no leader", "broker missing", "leader missing"],
)
def test_lack_of_a_replica_a_leader_or_a_broker_degrades_the_cluster(
    partition: tuple[int, list[int], list[int]], alive: tuple[int, ...], counts: tuple[int, int, set[int]]
):
    answer = describe(metadata({"penstock.c1.ingest.g1": [partition]}, alive))
    assert (answer.under_replicated, answer.leaderless, set(answer.missing)) == counts
    assert answer.examples == ("penstock.c1.ingest.g1/0",)
    assert state_of(answer) == State.DEGRADED


def test_topics_of_other_systems_do_not_count():
    assert state_of(describe(metadata({"billing": [(-1, [1], [])]}))) == State.HEALTHY


def test_missing_broker_keeps_the_address_of_an_earlier_answer():
    answer = describe(metadata({"penstock.audit": [(1, [1, 2, 9], [1])]}, alive=(1,)))
    assert broker_list(answer, {2: "kafka-2:9092"}) == [
        {"id": 1, "address": "kafka-1:9092", "alive": True},
        {"id": 2, "address": "kafka-2:9092", "alive": False},
        {"id": 9, "address": "", "alive": False},
    ]


def test_no_answer_is_unreachable():
    assert state_of(None) == State.UNREACHABLE
