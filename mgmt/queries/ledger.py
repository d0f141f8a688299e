"""Accounts of minutes, from the Observer's rows: loads the books and lets dataplane.ledger derive the bins."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple, cast

from pyroaring import BitMap64

from dataplane.ledger.bins import Account, Books, Place, derive
from dataplane.ledger.facts import FactKey
from dataplane.names import Purpose
from mgmt.models import FactRow, Reach, Topic
from mgmt.queries.cells import cells_of, passed_at

Topics = dict[Purpose, list[tuple[str, int]]]


class Minute(NamedTuple):
    """A pipe's bucket."""

    pipe_id: str
    bucket: int


def accounts(pipe_id: str, buckets: Iterable[int]) -> dict[int, Account]:
    """The account of each of a pipe's buckets as it stands now; a bucket nothing is known of has an empty one."""
    found = accounts_of(Minute(pipe_id, bucket) for bucket in buckets)
    return {minute.bucket: account for minute, account in found.items()}


def accounts_of(minutes: Iterable[Minute]) -> dict[Minute, Account]:
    """The accounts of many minutes, in any pipes, with five queries whatever their number."""
    return {minute: derive(books) for minute, books in books_of(minutes).items()}


def books_of(minutes: Iterable[Minute]) -> dict[Minute, Books]:
    """Everything known of each minute, facts merged over audit partitions."""
    wanted = sorted(set(minutes))
    if not wanted:
        return {}
    pipes = {minute.pipe_id for minute in wanted}
    buckets = {minute.bucket for minute in wanted}
    topics_of = _topics_by_pipe(pipes)
    names = {name for topics in topics_of.values() for places in topics.values() for name, _ in places}
    # The order matters while the Observer writes: facts read after the marks may be newer than these, and a unit is
    # then queued a moment too long. The other way round it would be called lost.
    passed = passed_at(names)
    reach = _reach(pipes, buckets)
    facts = _facts(pipes, buckets)
    return {
        minute: Books(
            facts=facts.get(minute, {}),
            reach=reach.get(minute, {}),
            passed=passed,
            topics=topics_of.get(minute.pipe_id, {}),
        )
        for minute in wanted
    }


def _facts(pipes: set[str], buckets: set[int]) -> Mapping[Minute, dict[FactKey, BitMap64]]:
    rows = FactRow.objects.filter(pipe_id__in=pipes, bucket__in=buckets).values_list(
        "pipe_id", "bucket", "node", "fact", "detail", "child", "positions"
    )
    merged: dict[Minute, dict[FactKey, BitMap64]] = defaultdict(dict)
    for pipe_id, bucket, node, fact, detail, child, positions in rows.iterator():
        book = merged[Minute(pipe_id, bucket)]
        key, units = FactKey(node, fact, detail, child), BitMap64.deserialize(bytes(positions))
        book[key] = book[key] | units if key in book else units
    return merged


def _reach(pipes: set[str], buckets: set[int]) -> Mapping[Minute, dict[Place, int]]:
    rows = Reach.objects.filter(pipe_id__in=pipes, bucket__in=buckets)
    found: dict[Minute, dict[Place, int]] = defaultdict(dict)
    for pipe_id, bucket, topic, partition, offset in rows.values_list(
        "pipe_id", "bucket", "topic", "partition", "offset"
    ):
        found[Minute(pipe_id, bucket)][topic, partition] = offset
    return found


def _topics_by_pipe(pipes: set[str]) -> dict[str, Topics]:
    cells = cells_of(pipes)
    by_cell: dict[str, Topics] = defaultdict(dict)
    rows = Topic.objects.filter(cell_id__in=set().union(*cells.values())).values_list(
        "cell_id", "purpose", "name", "generation"
    )
    for cell_id, purpose, name, generation in rows:
        by_cell[cell_id].setdefault(cast(Purpose, purpose), []).append((name, generation))
    return {pipe_id: _together(by_cell[cell] for cell in its) for pipe_id, its in cells.items()}


def _together(cells: Iterable[Topics]) -> Topics:
    found: Topics = {}
    for topics in cells:
        for purpose, places in topics.items():
            found[purpose] = found.get(purpose, []) + places
    return found
