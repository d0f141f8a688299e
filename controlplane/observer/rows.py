"""Load and store the Observer's rows in bulk, without decisions."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec
from django.db.models import F, Q
from pyroaring import BitMap64

from controlplane.observer.attempts import at_us
from controlplane.observer.columns import execute_in_columns
from controlplane.observer.merge import BREAKDOWN, FactId, LagId, MergedRecords, PipeBucket, clean
from dataplane.ledger.facts import LOG
from dataplane.ledger.heartbeat import HeartbeatRecord
from dataplane.names import RAMP_PREFIX, SEQUENCE_PREFIX
from mgmt.models import FactRow, LagRow, LateCount, Seal
from mgmt.models import Heartbeat as HeartbeatRow

ROWS: Final = 500  # per statement by Django
UPSERTED: Final = 5_000  # per statement of this module

_SAVE_FACTS: Final = """
INSERT INTO mgmt_factrow (pipe_id, bucket, node, fact, detail, child, audit_partition, positions, "count")
SELECT * FROM unnest(%s::varchar[], %s::int[], %s::varchar[], %s::varchar[], %s::varchar[], %s::int[], %s::int[],
                     %s::bytea[], %s::int[])
ON CONFLICT (pipe_id, bucket, node, fact, detail, child, audit_partition)
DO UPDATE SET positions = EXCLUDED.positions, "count" = EXCLUDED."count"
"""
# A record need not have every column of a row.
_SAVE_LAGS: Final = """
INSERT INTO mgmt_lagrow AS known (pipe_id, bucket, node, audit_partition, lag_in, lag_out, own, breakdown)
SELECT * FROM unnest(%s::varchar[], %s::int[], %s::varchar[], %s::int[], %s::bytea[], %s::bytea[], %s::bytea[],
                     %s::bytea[])
ON CONFLICT (pipe_id, bucket, node, audit_partition) DO UPDATE SET
    lag_in = COALESCE(EXCLUDED.lag_in, known.lag_in), lag_out = COALESCE(EXCLUDED.lag_out, known.lag_out),
    own = COALESCE(EXCLUDED.own, known.own), breakdown = COALESCE(EXCLUDED.breakdown, known.breakdown)
"""
_LAG_COLUMNS: Final = {"in": "lag_in", "out": "lag_out", "own": "own", BREAKDOWN: "breakdown"}
# The highest value wins in any order of writes; Django's upsert can only overwrite.
_RAISE_REACH: Final = """
INSERT INTO mgmt_reach AS known (pipe_id, bucket, topic, "partition", "offset")
SELECT * FROM unnest(%s::varchar[], %s::int[], %s::varchar[], %s::int[], %s::bigint[])
ON CONFLICT (pipe_id, bucket, topic, "partition") DO UPDATE SET "offset" = EXCLUDED."offset"
WHERE known."offset" < EXCLUDED."offset"
"""
_RAISE_PASSED: Final = """
INSERT INTO mgmt_passed AS known (topic, "partition", "offset")
SELECT * FROM unnest(%s::varchar[], %s::int[], %s::bigint[])
ON CONFLICT (topic, "partition") DO UPDATE SET "offset" = EXCLUDED."offset"
WHERE known."offset" < EXCLUDED."offset"
"""


def _among(ids: Sequence[FactId] | Sequence[LagId]) -> Q:
    """Return a condition that an index serves; it matches the rows of `ids` and a few others."""
    return Q(
        pipe_id__in={i.pipe for i in ids},
        bucket__in={i.bucket for i in ids},
        audit_partition__in={i.partition for i in ids},
    )


def load_facts(ids: list[FactId]) -> dict[FactId, bytes]:
    """Return the stored position sets of these facts, as serialized bitmaps."""
    rows = FactRow.objects.filter(_among(ids)).values_list(
        "pipe_id", "bucket", "node", "fact", "detail", "child", "audit_partition", "positions"
    )
    wanted = set(ids)
    return {key: bytes(row[-1]) for row in rows if (key := FactId(*row[:-1])) in wanted}


def load_lags(ids: list[LagId]) -> dict[LagId, bytes]:
    """Return the stored lag sketches of these ids, encoded."""
    rows = LagRow.objects.filter(_among(ids)).values_list(
        "pipe_id", "bucket", "node", "audit_partition", *_LAG_COLUMNS.values()
    )
    wanted = set(ids)
    return {
        key: bytes(value)
        for pipe, bucket, node, partition, *values in rows
        for column, value in zip(_LAG_COLUMNS, values, strict=True)
        if value is not None and (key := LagId(pipe, bucket, node, column, partition)) in wanted
    }


def save_facts(facts: Mapping[FactId, bytes]) -> None:
    """Insert facts, or replace their position sets."""
    _upsert(_SAVE_FACTS, [(*key, positions, size_of(positions)) for key, positions in facts.items()])


def save_lags(lags: Mapping[LagId, bytes]) -> None:
    """Insert lag sketches, or replace those of the same node and minute."""
    columns: dict[tuple[object, ...], dict[str, bytes]] = defaultdict(dict)
    for key, value in lags.items():
        columns[key.pipe, key.bucket, key.node, key.partition][key.way] = value
    _upsert(_SAVE_LAGS, [(*row, *map(found.get, _LAG_COLUMNS)) for row, found in columns.items()])


def _upsert(statement: str, rows: Sequence[tuple[object, ...]]) -> None:
    for first in range(0, len(rows), UPSERTED):
        execute_in_columns(statement, rows[first : first + UPSERTED])


def raise_marks(tally: MergedRecords) -> None:
    """Raise the high and settled offsets; they never go down."""
    execute_in_columns(_RAISE_REACH, [(*key, tally.reach[key]) for key in sorted(tally.reach)])
    execute_in_columns(_RAISE_PASSED, [(*key, tally.passed[key]) for key in sorted(tally.passed)])


def save_heartbeats(heartbeats: Iterable[HeartbeatRecord]) -> None:
    """Insert heartbeats, or replace older ones of the same writers."""
    HeartbeatRow.objects.bulk_create(
        [_heartbeat_row(heartbeat) for heartbeat in heartbeats],
        update_conflicts=True,
        unique_fields=["cell", "writer"],
        update_fields=["kind", "epoch", "incarnation", "state", "table_offset", "at", "body"],
    )


def _heartbeat_row(heartbeat: HeartbeatRecord) -> HeartbeatRow:
    return HeartbeatRow(
        cell=clean(heartbeat.cell, 20),
        writer=clean(heartbeat.writer, 60),
        kind=clean(heartbeat.kind, 16),
        epoch=heartbeat.epoch,
        incarnation=clean(heartbeat.incarnation, 40),
        state=clean(heartbeat.state, 10),
        table_offset=heartbeat.table_offset,
        at=at_us(heartbeat.at_us),
        body=msgspec.to_builtins(heartbeat),
    )


def count_late(changed: Mapping[FactId, bytes], known: Mapping[FactId, bytes], maybe_sealed_before: int) -> None:
    """Count, per fact, the units that sealed buckets gain, because a seal never changes."""
    late = [key for key in changed if key.bucket < maybe_sealed_before]
    # Units of LOG, ramp nodes and sequences are counted already under their own nodes.
    old = [key for key in late if key.node != LOG and not key.node.startswith((RAMP_PREFIX, SEQUENCE_PREFIX))]
    if not old:
        return
    sealed: set[PipeBucket] = set(
        Seal.objects.filter(pipe_id__in={k.pipe for k in old}, bucket__in={k.bucket for k in old}).values_list(
            "pipe_id", "bucket"
        )
    )
    for key in old:
        if (key.pipe, key.bucket) in sealed:
            gained = size_of(changed[key]) - (size_of(known[key]) if key in known else 0)
            _add_late(key, gained)


def _add_late(key: FactId, gained: int) -> None:
    row = {"pipe_id": key.pipe, "bucket": key.bucket, "node": key.node, "fact": key.fact}
    LateCount.objects.get_or_create(**row, defaults={"count": 0})
    LateCount.objects.filter(**row).update(count=F("count") + gained)


def size_of(positions: bytes) -> int:
    """Return the number of positions in a serialized bitmap."""
    return len(BitMap64.deserialize(positions))
