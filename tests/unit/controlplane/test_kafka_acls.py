"""ACLs of roles and tenants: what Kafka decides by them for each topic and group that Penstock uses."""

import pytest

from controlplane.kafka_access.acls import (
    OFFSETS_TOPIC,
    ROLES,
    Acl,
    KafkaRole,
    customer_acls,
    customer_groups,
    customer_user,
    role_acls,
    role_user,
)
from controlplane.kafka_access.quotas import REQUEST_PERCENT, quotas
from dataplane.ingest.feed import group_settings
from dataplane.ingest.operational_feed import GROUP_PART, OperationalFeedKey
from dataplane.ingest.table_feed import TableFeedKey
from dataplane.names import (
    AUDIT_TOPIC,
    CONTROL_TOPIC,
    HEARTBEAT_TOPIC,
    LANE_KINDS,
    LOOKUP_TOPIC,
    OPERATIONAL_TOPIC,
    PURPOSES,
    cell_topic,
    lane_group,
    output_topic,
)

CELL_TOPICS = [cell_topic("c7", purpose, 1) for purpose in PURPOSES]
SHARED = [AUDIT_TOPIC, CONTROL_TOPIC, HEARTBEAT_TOPIC, LOOKUP_TOPIC, OPERATIONAL_TOPIC]
OUTPUT = output_topic("pipe_a", "feed")
EVERY = [*CELL_TOPICS, *SHARED, OUTPUT]


def may(acls: list[Acl], operation: str, resource: str, name: str) -> bool:
    """Decide as Kafka does: a denial counts before every permission, and nothing is allowed without one."""
    hits = [acl for acl in acls if (acl.operation, acl.resource) == (operation, resource)]
    hits = [acl for acl in hits if name.startswith(acl.name) if acl.prefixed or name == acl.name]
    return bool(hits) and not any(acl.denied for acl in hits)


def allowed(acls: list[Acl], operation: str) -> set[str]:
    return {name for name in EVERY if may(acls, operation, "topic", name)}


def test_ingest_writes_events_and_reports_and_reads_no_event():
    acls = role_acls("ingest")
    assert allowed(acls, "read") == {CONTROL_TOPIC, HEARTBEAT_TOPIC, LOOKUP_TOPIC, OPERATIONAL_TOPIC}
    operational = OperationalFeedKey("pipe_a", "src", "ten_a", ("penstock.*",))
    assert may(acls, "read", "group", group_settings(operational, GROUP_PART)["group.id"])
    group = group_settings(TableFeedKey("pipe_a", "src", "ten_a", "tab_a", "now", ""), "tab_a")["group.id"]
    assert may(acls, "read", "group", group)
    assert not may(acls, "read", "group", "penstock.tail")
    assert allowed(acls, "write") == {*CELL_TOPICS, AUDIT_TOPIC, HEARTBEAT_TOPIC}


def test_cells_read_and_write_all_topics_and_create_none():
    acls = role_acls("cells")
    assert allowed(acls, "read") == allowed(acls, "write") == set(EVERY)
    assert not allowed(acls, "create") | allowed(acls, "delete")
    assert all(may(acls, "read", "group", lane_group("c7", kind)) for kind in LANE_KINDS)
    assert not may(acls, "read", "group", f"{customer_groups('ten_a')}app")


def test_web_process_reads_and_writes_nothing():
    acls = role_acls("web")
    assert allowed(acls, "read") == set(EVERY)
    assert not allowed(acls, "write")
    assert not any(may(acls, "read", "group", lane_group("c7", kind)) for kind in LANE_KINDS)


def test_table_queries_use_the_look_up_topic_alone():
    acls = role_acls("tables")
    assert allowed(acls, "read") == {CONTROL_TOPIC, LOOKUP_TOPIC}
    assert allowed(acls, "write") == {LOOKUP_TOPIC}


def test_control_plane_makes_and_configures_all_topics():
    acls = role_acls("control")
    for operation in ("read", "write", "create", "alter_configs", "describe_configs"):
        assert allowed(acls, operation) == set(EVERY)


@pytest.mark.parametrize("role", list(ROLES))
def test_no_role_has_rights_beyond_penstocks_names(role: KafkaRole):
    acls = role_acls(role)
    assert {acl.user for acl in acls} == {role_user(role)}
    others = {(acl.name, acl.operation) for acl in acls if not acl.name.startswith(("penstock", "spark-kafka-"))}
    assert others == ({(OFFSETS_TOPIC, "describe")} if role == "control" else set())
    assert not may(acls, "read", "topic", "orders")


def test_tenant_reads_its_own_pipes_topics_with_groups_of_its_own():
    acls = customer_acls("ten_a", ["pipe_a"])
    assert {acl.user for acl in acls} == {customer_user("ten_a")}
    assert allowed(acls, "read") == {OUTPUT}
    assert not any(allowed(acls, operation) for operation in ("write", "create", "delete", "alter_configs"))
    assert may(acls, "read", "topic", output_topic("pipe_a", "second"))
    assert not may(acls, "read", "topic", output_topic("pipe_ab", "feed"))
    assert may(acls, "read", "group", "ten_a.app")
    assert not any(may(acls, "read", "group", group) for group in ("app", "ten_ab.app", "penstock.c7.transmit"))


def test_quotas_bound_bytes_and_requests_and_are_removed_together():
    limits = quotas(1_000)
    assert limits["consumer_byte_rate"] == 1_000
    assert limits["request_percentage"] == REQUEST_PERCENT
    assert quotas(None) == dict.fromkeys(limits)


def test_tenant_without_topics_reads_nothing():
    assert not allowed(customer_acls("ten_a", []), "read")
