"""Which topics are mirrored, how, and which groups read them."""

import pytest

from dataplane.mirror.selection import (
    TopicLayout,
    differing_layouts,
    groups_of,
    ingest_topics,
    is_own_topic,
    metric_label,
    parse_cell_topic,
)
from dataplane.names import (
    AUDIT_TOPIC,
    CONTROL_TOPIC,
    HEARTBEAT_TOPIC,
    INPUTS_OF,
    LANE_KINDS,
    LOOKUP_TOPIC,
    MIRROR_TOPIC,
    OPERATIONAL_TOPIC,
    PURPOSES,
    QUERY_INPUTS,
    cell_topic,
    lane_group,
    output_topic,
    query_group,
)
from dataplane.spec import TopicDestination
from mgmt.pipes.topics import RETENTION_MS, TopicShape, cell_plans, output_plan

SHAPE = TopicShape(partitions=3, replication=1, min_isr=1, retention_ms=dict(RETENTION_MS))


def layouts() -> dict[str, TopicLayout]:
    plans = cell_plans("c-1", 1, SHAPE).values()
    return {plan.name: TopicLayout(plan.name, plan.partitions, plan.replication, plan.config) for plan in plans}


def test_every_topic_of_penstock_is_mirrored_but_the_mirrors_own():
    names = [CONTROL_TOPIC, AUDIT_TOPIC, HEARTBEAT_TOPIC, LOOKUP_TOPIC, OPERATIONAL_TOPIC, *layouts()]
    assert all(is_own_topic(name) for name in [*names, output_topic("pipe_1", "crm")])
    assert not any(is_own_topic(name) for name in (MIRROR_TOPIC, "orders", "__consumer_offsets"))


def test_live_tails_and_heartbeats_are_created_and_not_copied():
    empty = {name for name, layout in layouts().items() if not layout.is_copied}
    assert empty == {cell_topic("c-1", "tail", 1)}
    assert not TopicLayout(HEARTBEAT_TOPIC, 1, 1, {}).is_copied
    assert TopicLayout(AUDIT_TOPIC, 4, 1, {}).is_copied


def test_every_topic_whose_offsets_are_committed_keeps_its_offsets():
    read = {purpose for purposes in INPUTS_OF.values() for purpose in purposes} | set(QUERY_INPUTS.values())
    compacted = {name for name, layout in layouts().items() if layout.is_compacted}
    assert compacted == {cell_topic("c-1", purpose, 1) for purpose in ("signals", "blocked", "panes")}
    assert not compacted & {cell_topic("c-1", purpose, 1) for purpose in read}


@pytest.mark.parametrize("purpose", PURPOSES)
def test_name_of_a_cells_topic_has_its_parts(purpose: str):
    assert parse_cell_topic(f"penstock.c-1.{purpose}.g12") == ("c-1", purpose, 12)


def test_other_names_are_no_topics_of_cells():
    other = [CONTROL_TOPIC, OPERATIONAL_TOPIC, output_topic("pipe_1", "g1"), "penstock.c1.other.g1"]
    assert [parse_cell_topic(name) for name in other] == [None] * len(other)


def test_groups_are_those_for_which_the_provisioner_commits_first_offsets():
    found = groups_of(layouts().values())
    assert found.keys() == {lane_group("c-1", kind) for kind in LANE_KINDS} | {
        query_group("c-1", query) for query in QUERY_INPUTS
    }
    assert found[lane_group("c-1", "process")] == [(cell_topic("c-1", "ingest", 1), number) for number in range(3)]
    assert {topic for topic, _ in found[lane_group("c-1", "retrier")]} == {
        cell_topic("c-1", purpose, 1) for purpose in INPUTS_OF["retrier"]
    }


def test_copies_keep_the_time_at_which_their_originals_were_stored():
    topics = layouts()
    ingest = topics[cell_topic("c-1", "ingest", 1)]
    assert ingest.config["message.timestamp.type"] == "LogAppendTime"
    assert ingest.of_copy.config == ingest.config | {"message.timestamp.type": "CreateTime"}
    assert TopicLayout(CONTROL_TOPIC, 1, 1, {}).of_copy.config == {}


def test_standby_topic_with_more_partitions_is_reported():
    name = cell_topic("c-1", "ingest", 1)
    assert differing_layouts(layouts(), {name: 3}) == []
    assert differing_layouts(layouts(), {name: 4}) == [f"{name} has 4 partitions, on the active cluster 3"]


def test_metrics_name_no_pipe():
    plan = output_plan("pipe_1", "crm", TopicDestination(), SHAPE)
    assert metric_label(plan.name) == "penstock.out"
    assert metric_label(CONTROL_TOPIC) == CONTROL_TOPIC


def test_ingest_topics_of_all_cells_are_found():
    assert ingest_topics(["penstock.c2.ingest.g1", CONTROL_TOPIC, "penstock.c1.ingest.g1"]) == [
        "penstock.c1.ingest.g1",
        "penstock.c2.ingest.g1",
    ]
