"""Accounts of buckets: loads the facts from the Observer's rows; dataplane.ledger derives the bins."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple, cast

from django.db import connection
from pyroaring import BitMap64

from dataplane.ledger.bins import BucketAccount, BucketFacts, Facts, derive
from dataplane.ledger.facts import FactKey
from dataplane.names import PartitionKey, Purpose
from mgmt.cells.queries.cells import cells_of, passed_at
from mgmt.models import HighOffset, Topic

_FACTS: Final = """
SELECT pipe_id, bucket, node, fact, detail, child, positions FROM "mgmt_factrow"
WHERE pipe_id = ANY(%s) AND bucket = ANY(%s) AND bucket BETWEEN %s AND %s
"""
Topics = dict[Purpose, list[tuple[str, int]]]


class MinuteKey(NamedTuple):
    """One bucket of one pipe."""

    pipe_id: str
    bucket: int


def accounts(pipe_id: str, buckets: Iterable[int]) -> dict[int, BucketAccount]:
    """Return the current account of each of a pipe's buckets; a bucket without facts has an empty one."""
    found = accounts_of(MinuteKey(pipe_id, bucket) for bucket in buckets)
    return {minute.bucket: account for minute, account in found.items()}


def accounts_of(minutes: Iterable[MinuteKey]) -> dict[MinuteKey, BucketAccount]:
    """Return the accounts of many buckets of any pipes; five queries for any number of them."""
    return {minute: derive(books) for minute, books in books_of(minutes).items()}


def books_of(minutes: Iterable[MinuteKey]) -> dict[MinuteKey, BucketFacts]:
    """Return the facts of each bucket, merged over audit partitions, with its offsets and topics."""
    wanted = sorted(set(minutes))
    if not wanted:
        return {}
    pipes = {minute.pipe_id for minute in wanted}
    buckets = {minute.bucket for minute in wanted}
    topics_of = _topics_by_pipe(pipes)
    names = {name for topics in topics_of.values() for places in topics.values() for name, _ in places}
    # The order matters while the Observer writes: facts read after the marks may be newer than the marks, and a unit
    # then counts as queued for a moment too long. In the other order it would count as lost.
    passed = passed_at(names)
    high_offsets = _high_offsets(pipes, buckets)
    facts = _facts(pipes, buckets)
    return {
        minute: BucketFacts(
            facts=facts.get(minute, {}),
            reach=high_offsets.get(minute, {}),
            passed=passed,
            topics=topics_of.get(minute.pipe_id, {}),
        )
        for minute in wanted
    }


def facts_of(minutes: Iterable[MinuteKey]) -> dict[MinuteKey, Facts]:
    """Return the facts of those buckets that have any, merged over audit partitions; one query."""
    wanted = set(minutes)
    if not wanted:
        return {}
    found = _facts({minute.pipe_id for minute in wanted}, {minute.bucket for minute in wanted})
    return {minute: found[minute] for minute in wanted & found.keys()}


def _facts(pipes: set[str], buckets: set[int]) -> dict[MinuteKey, dict[FactKey, BitMap64]]:
    merged: dict[MinuteKey, dict[FactKey, BitMap64]] = defaultdict(dict)
    with connection.cursor() as cursor:  # thousands of rows for home: no queryset, and few values to bind
        cursor.execute(_FACTS, [list(pipes), list(buckets), min(buckets), max(buckets)])
        rows = cursor.fetchall()
    for pipe_id, bucket, node, fact, detail, child, positions in rows:
        book = merged[MinuteKey(pipe_id, bucket)]
        key, units = FactKey(node, fact, detail, child), BitMap64.deserialize(bytes(positions))
        book[key] = book[key] | units if key in book else units
    return merged


def _high_offsets(pipes: set[str], buckets: set[int]) -> Mapping[MinuteKey, dict[PartitionKey, int]]:
    rows = HighOffset.objects.filter(pipe_id__any_of=pipes, bucket__in=buckets)
    found: dict[MinuteKey, dict[PartitionKey, int]] = defaultdict(dict)
    for pipe_id, bucket, topic, partition, offset in rows.values_list(
        "pipe_id", "bucket", "topic", "partition", "offset"
    ):
        found[MinuteKey(pipe_id, bucket)][topic, partition] = offset
    return found


def _topics_by_pipe(pipes: set[str]) -> dict[str, Topics]:
    cells = cells_of(pipes)
    by_cell: dict[str, Topics] = defaultdict(dict)
    rows = Topic.objects.filter(cell_id__in=set().union(*cells.values())).values_list(
        "cell_id", "purpose", "name", "generation"
    )
    for cell_id, purpose, name, generation in rows:
        by_cell[cell_id].setdefault(cast(Purpose, purpose), []).append((name, generation))
    return {pipe_id: _merged(by_cell[cell] for cell in its) for pipe_id, its in cells.items()}


def _merged(cells: Iterable[Topics]) -> Topics:
    found: Topics = {}
    for topics in cells:
        for purpose, places in topics.items():
            found[purpose] = found.get(purpose, []) + places
    return found
