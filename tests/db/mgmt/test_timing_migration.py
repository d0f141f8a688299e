"""Lags that an earlier release stored by direction become columns of one row, and the reverse."""

from datetime import UTC, datetime
from importlib import import_module

import pytest
from django.db import connection

from controlplane.observer.days import keep_days
from mgmt.ledger.queries.bucket_range import bucket_at
from mgmt.models import LagRow

pytestmark = pytest.mark.django_db(transaction=False)
migration = import_module("mgmt.migrations.0030_timing_of_nodes")
NOW = datetime(2031, 5, 10, 12, 30, tzinfo=UTC)
TODAY = bucket_at(NOW)
BY_WAY = "pipe_id, bucket, node, way, audit_partition, sketch"
OLD = [
    ("p", 7, "ingest", "in", 0, b"a"),
    ("p", 7, "ingest", "out", 0, b"b"),
    ("p", 7, "ingest", "out", 1, b"c"),
    ("p", 7, "transmit:crm", "in", 0, b"d"),
    ("q", TODAY, "normalize", "out", 0, b"e"),
]
NEW = [
    ("p", 7, "ingest", 0, b"a", b"b"),
    ("p", 7, "ingest", 1, None, b"c"),
    ("p", 7, "transmit:crm", 0, b"d", None),
    ("q", TODAY, "normalize", 0, None, b"e"),
]


def columns() -> set[str]:
    with connection.cursor() as cursor:
        return {column.name for column in connection.introspection.get_table_description(cursor, "mgmt_lagrow")}


def test_rows_by_direction_are_joined_and_split_inside_and_outside_day_partitions():
    keep_days(NOW, facts_keep_d=30, seals_keep_d=400)
    with connection.schema_editor() as editor:
        migration._part_ways(None, editor)
    assert {"way", "sketch"} <= columns()
    with connection.cursor() as cursor:
        cursor.executemany(f"INSERT INTO mgmt_lagrow ({BY_WAY}) VALUES (%s, %s, %s, %s, %s, %s)", OLD)  # noqa: S608 (our own)
    with connection.schema_editor() as editor:
        migration._join_ways(None, editor)
    rows = LagRow.objects.order_by("pipe_id", "node", "audit_partition")
    found = rows.values_list("pipe_id", "bucket", "node", "audit_partition", "lag_in", "lag_out", "own", "breakdown")
    plain = [tuple(bytes(one) if isinstance(one, memoryview) else one for one in row) for row in found]
    assert plain == [(*row, None, None) for row in NEW]
    with connection.schema_editor() as editor:
        migration._part_ways(None, editor)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pipe_id, bucket, node, way, audit_partition, sketch FROM mgmt_lagrow ORDER BY 1, 3, 5, 4"
        )
        assert [(*row[:-1], bytes(row[-1])) for row in cursor.fetchall()] == OLD
    with connection.schema_editor() as editor:
        migration._join_ways(None, editor)
