"""Topic plans: names, order of records, retention and the protection against loss."""

import pytest
from django.conf import settings as django_settings
from msgspec.structs import replace

from controlplane.topics import cluster_plans, first_readers
from dataplane.names import AUDIT_TOPIC, CONTROL_TOPIC, DELAYS_S, LOOKUP_TOPIC, PURPOSES, Purpose
from dataplane.spec import TopicDestination
from mgmt.cells.policies import topic_shape
from mgmt.pipes.topics import DAY_MS, RETENTION_MS, TopicShape, cell_plans, output_plan

SHAPE = TopicShape(partitions=4, replication=3, min_isr=2, retention_ms=dict(RETENTION_MS))


def test_cell_has_one_topic_for_each_purpose():
    assert {plan.name for plan in cell_plans("c1", 1, SHAPE).values()} == {f"penstock.c1.{p}.g1" for p in PURPOSES}


@pytest.mark.parametrize("purpose", ["retry-in", *DELAYS_S, "retry-out", "dead", "held"])
def test_topics_of_waiting_messages_outlive_the_longest_retry_span_by_a_week(purpose: Purpose):
    assert int(cell_plans("c1", 1, SHAPE)[purpose].config["retention.ms"]) >= 14 * DAY_MS


def test_every_topic_is_protected_against_loss_and_wrong_sender_clocks():
    for plan in [*cell_plans("c1", 1, SHAPE).values(), *cluster_plans(SHAPE)]:
        assert plan.replication == 3
        assert plan.config["min.insync.replicas"] == "2"
        assert plan.config["unclean.leader.election.enable"] == "false"
        assert plan.config["message.timestamp.type"] == "LogAppendTime"


@pytest.mark.parametrize("topic", [CONTROL_TOPIC, LOOKUP_TOPIC])
def test_control_and_look_up_topics_are_compacted_with_one_partition(topic: str):
    plan = next(plan for plan in cluster_plans(SHAPE) if plan.name == topic)
    assert (plan.partitions, plan.config["cleanup.policy"], plan.config["retention.ms"]) == (1, "compact", "-1")


def test_signals_topic_is_compacted_with_one_partition():
    signals = cell_plans("c1", 1, SHAPE)["signals"]
    assert (signals.partitions, signals.config["cleanup.policy"]) == (1, "compact")
    assert signals.config["retention.ms"] == "-1"


def test_blocked_keys_are_compacted_and_expire_when_no_message_of_theirs_can_be_left():
    blocked = cell_plans("c1", 1, SHAPE)["blocked"]
    assert (blocked.partitions, blocked.config["cleanup.policy"]) == (1, "compact,delete")
    assert int(blocked.config["retention.ms"]) > 0


@pytest.mark.parametrize(("shape", "partitions"), [(SHAPE, 1), (replace(SHAPE, taps_partitions=6), 6)])
def test_taps_have_one_partition_unless_the_shape_sets_more(shape: TopicShape, partitions: int):
    plans = cell_plans("c1", 1, shape)
    assert plans["taps"].partitions == partitions
    assert plans["panes"].partitions == plans["ingest"].partitions == SHAPE.partitions


def test_partitions_of_taps_are_a_setting(monkeypatch: pytest.MonkeyPatch):
    assert topic_shape().taps_partitions == 1
    monkeypatch.setattr(django_settings, "PENSTOCK_TAPS_PARTITIONS", 3)
    assert topic_shape().taps_partitions == 3


def test_delay_tier_has_as_many_partitions_as_the_topics_that_it_feeds():
    plans = cell_plans("c1", 1, SHAPE)
    assert {plans[purpose].partitions for purpose in ("retry-in", *DELAYS_S, "retry-out")} == {SHAPE.partitions}


def test_audit_topic_has_partitions_for_at_most_four_observers():
    assert next(plan for plan in cluster_plans(SHAPE) if plan.name == AUDIT_TOPIC).partitions == 4


def test_each_lane_group_reads_its_own_topics():
    groups = first_readers(cell_plans("c1", 1, SHAPE), "c1")
    assert {group: [plan.name for plan in plans] for group, plans in groups.items()} == {
        "penstock.c1.process": ["penstock.c1.ingest.g1"],
        "penstock.c1.sequence": ["penstock.c1.sequence.g1"],
        "penstock.c1.process-slow": ["penstock.c1.process-slow.g1"],
        "penstock.c1.transmit": ["penstock.c1.egress.g1"],
        "penstock.c1.transmit-retry": ["penstock.c1.retry-out.g1"],
        "penstock.c1.transmit-slow": ["penstock.c1.slow.g1"],
        "penstock.c1.retrier": [f"penstock.c1.{purpose}.g1" for purpose in ("retry-in", *DELAYS_S)],
        "penstock.c1.dedup": ["penstock.c1.dedup.g1"],
        "penstock.c1.windows": ["penstock.c1.taps.g1"],
        "penstock.c1.lake": ["penstock.c1.lake.g1"],
        "penstock.c1.bulk": ["penstock.c1.bulk.g1"],
    }


def test_compacted_topic_keeps_the_last_record_of_each_key_and_its_tombstones_for_a_time():
    plan = output_plan("pipe_1", "feed", TopicDestination(compacted=True, retention_h=24), SHAPE)
    assert plan.config["cleanup.policy"] == "compact"
    assert plan.config["retention.ms"] == "-1"
    assert plan.config["delete.retention.ms"] == str(24 * 3_600_000)
    assert output_plan("pipe_1", "feed", TopicDestination(), SHAPE).config["cleanup.policy"] == "delete"
