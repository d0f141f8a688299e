"""Topics as they should be: names, order of records, retention and the guards against loss."""

import pytest

from controlplane.topics import cluster_plans, first_readers
from dataplane.names import AUDIT_TOPIC, CONTROL_TOPIC, DELAYS_S, LOOKUP_TOPIC, PURPOSES, Purpose
from mgmt.provisioning.topics import DAY_MS, RETENTION_MS, TopicShape, cell_plans

SHAPE = TopicShape(partitions=4, replication=3, min_isr=2, retention_ms=dict(RETENTION_MS))


def test_a_cell_has_one_topic_for_each_purpose():
    assert {plan.name for plan in cell_plans("c1", 1, SHAPE).values()} == {f"penstock.c1.{p}.g1" for p in PURPOSES}


@pytest.mark.parametrize("purpose", ["retry-in", *DELAYS_S, "retry-out", "dead", "held"])
def test_what_waits_outlives_the_longest_retry_span_by_a_week(purpose: Purpose):
    assert int(cell_plans("c1", 1, SHAPE)[purpose].config["retention.ms"]) >= 14 * DAY_MS


def test_every_topic_is_guarded_against_loss_and_senders_clocks():
    for plan in [*cell_plans("c1", 1, SHAPE).values(), *cluster_plans(SHAPE)]:
        assert plan.replication == 3
        assert plan.config["min.insync.replicas"] == "2"
        assert plan.config["unclean.leader.election.enable"] == "false"
        assert plan.config["message.timestamp.type"] == "LogAppendTime"


@pytest.mark.parametrize("topic", [CONTROL_TOPIC, LOOKUP_TOPIC])
def test_control_and_look_ups_are_compacted_and_in_one_order(topic: str):
    plan = next(plan for plan in cluster_plans(SHAPE) if plan.name == topic)
    assert (plan.partitions, plan.config["cleanup.policy"], plan.config["retention.ms"]) == (1, "compact", "-1")


def test_signals_are_compacted_and_in_one_order():
    signals = cell_plans("c1", 1, SHAPE)["signals"]
    assert (signals.partitions, signals.config["cleanup.policy"]) == (1, "compact")
    assert signals.config["retention.ms"] == "-1"


def test_blocked_keys_are_compacted_and_forgotten_when_no_message_of_theirs_can_be_left():
    blocked = cell_plans("c1", 1, SHAPE)["blocked"]
    assert (blocked.partitions, blocked.config["cleanup.policy"]) == (1, "compact,delete")
    assert int(blocked.config["retention.ms"]) > 0


def test_a_tier_has_as_many_partitions_as_what_it_feeds():
    plans = cell_plans("c1", 1, SHAPE)
    assert {plans[purpose].partitions for purpose in ("retry-in", *DELAYS_S, "retry-out")} == {SHAPE.partitions}


def test_audit_is_read_by_at_most_four_observers():
    assert next(plan for plan in cluster_plans(SHAPE) if plan.name == AUDIT_TOPIC).partitions == 4


def test_each_lane_group_reads_its_own_topics():
    groups = first_readers(cell_plans("c1", 1, SHAPE), "c1")
    assert {group: [plan.name for plan in plans] for group, plans in groups.items()} == {
        "penstock.c1.process": ["penstock.c1.ingest.g1"],
        "penstock.c1.process-slow": ["penstock.c1.process-slow.g1"],
        "penstock.c1.transmit": ["penstock.c1.egress.g1"],
        "penstock.c1.transmit-retry": ["penstock.c1.retry-out.g1"],
        "penstock.c1.transmit-slow": ["penstock.c1.slow.g1"],
        "penstock.c1.retrier": [f"penstock.c1.{purpose}.g1" for purpose in ("retry-in", *DELAYS_S)],
        "penstock.c1.dedup": ["penstock.c1.dedup.g1"],
        "penstock.c1.windows": ["penstock.c1.taps.g1"],
        "penstock.c1.lake": ["penstock.c1.lake.g1"],
    }
