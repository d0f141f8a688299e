"""Cells that hold messages of a pipe: the one on which it is placed, and those that it has left.

Messages that were held, dead-lettered, scheduled for a retry or stored on a cell stay on its topics. Each position
contains the topic's generation, which no two cells share.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Final

from django.db.models import Max, Q, QuerySet
from msgspec.structs import replace

from dataplane.names import is_replay
from mgmt.models import Cell, Pipe, PipeMigration, Replay, SettledOffset, Topic
from mgmt.pipes.topics import TopicShape

FOR_EVER: Final = 1 << 62
SETTLING: Final = timedelta(minutes=2)  # a message's bucket may be one minute ahead of the clock


def partitions_of(cell: str) -> int | None:
    """Return the partitions of a cell's topics; None if the default of the installation will apply to them."""
    bound = Topic.objects.filter(cell=cell, purpose="ingest").values_list("partitions", flat=True).first()
    return bound or Cell.objects.values_list("partitions", flat=True).get(id=cell)


def shape_of(cell: str, shape: TopicShape) -> TopicShape:
    """Return the shape of the cell's topics, which has its own number of partitions."""
    return replace(shape, partitions=partitions_of(cell) or shape.partitions)


def cells_of(pipes: Iterable[str]) -> Mapping[str, set[str]]:
    """Return by pipe every cell that it is or was on; one query. A pipe that is not placed has none.

    The ledger has the ids of replays in place of pipes: a replay is on one cell.
    """
    ids = list(pipes)
    placed = Pipe.objects.filter(id__any_of=ids, cell__isnull=False).values_list("id", "cell_id")
    left = PipeMigration.objects.filter(pipe__id__any_of=ids, switched_at__isnull=False)
    rows = placed.union(left.values_list("pipe_id", "source_id"))
    if replays := [id_ for id_ in ids if is_replay(id_)]:
        rows = rows.union(Replay.objects.filter(id__any_of=replays).values_list("id", "cell_id"))
    found: dict[str, set[str]] = defaultdict(set)
    for pipe, cell in rows:
        found[pipe].add(cell)
    return found


def cells_left(pipes: Iterable[str]) -> Mapping[str, list[tuple[str, int]]]:
    """Return by pipe each cell that it has left, with the last bucket that may have new messages there."""
    rows = PipeMigration.objects.filter(pipe__in=list(pipes), switched_at__isnull=False)
    found: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for pipe, cell, finished_at in rows.values_list("pipe_id", "source_id", "finished_at"):
        until = int((finished_at + SETTLING).timestamp() // 60) if finished_at else FOR_EVER
        found[pipe].append((cell, until))
    return found


def topics_of(pipes: Iterable[str], purpose: str) -> QuerySet[Topic]:
    """Return the topics for one purpose of all cells that these pipes are or were on."""
    ids = list(pipes)
    placed = Pipe.objects.filter(id__in=ids, cell__isnull=False).values("cell")
    left = PipeMigration.objects.filter(pipe__in=ids, switched_at__isnull=False).values("source")
    return Topic.objects.filter(Q(cell__in=placed) | Q(cell__in=left), purpose=purpose)


def topic_at(pipe: str, purpose: str, generation: int) -> Topic | None:
    """Return the topic of this generation that has messages of the pipe, or None."""
    return topics_of([pipe], purpose).filter(generation=generation).first()


def places_of(cell: str, *purposes: str) -> list[tuple[str, int]]:
    """Return the (topic, partition) of each partition of the cell's topics for these purposes."""
    topics = Topic.objects.filter(cell=cell, purpose__in=purposes).values_list("name", "partitions")
    return [(name, number) for name, partitions in topics for number in range(partitions)]


def passed_at(topics: Iterable[str]) -> dict[tuple[str, int], int]:
    """Return the offset below which everything is settled by (topic, partition), as far as lanes reported it."""
    rows = SettledOffset.objects.filter(topic__in=topics).values_list("topic", "partition", "offset")
    return {(topic, partition): offset for topic, partition, offset in rows}


def generation_of(cell: str) -> int:
    """Return the generation of a cell's topics or, before they are created, one that no other cell has."""
    newest = Topic.objects.aggregate(its=Max("generation", filter=Q(cell=cell)), of_all=Max("generation"))
    return newest["its"] or (newest["of_all"] or 0) + 1
