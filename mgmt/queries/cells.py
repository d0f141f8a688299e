"""Which cells hold what of a pipe: the one it is placed on, and those that it has left.

What was held, dead or parked on a cell stays on its topics, and so does what was stored there: their generation, which
no two cells share, is in every position.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Final

from django.db.models import Max, Q, QuerySet

from mgmt.models import Passed, Pipe, Relocation, Topic

FOR_EVER: Final = 1 << 62
SETTLING: Final = timedelta(minutes=2)  # a message's minute may lie one ahead of the clock


def cells_of(pipes: Iterable[str]) -> Mapping[str, set[str]]:
    """By pipe, every cell that it is or was on: one query. One that is not placed has none."""
    ids = list(pipes)
    placed = Pipe.objects.filter(id__in=ids, cell__isnull=False).values_list("id", "cell_id")
    left = Relocation.objects.filter(pipe__in=ids, switched_at__isnull=False).values_list("pipe_id", "source_id")
    found: dict[str, set[str]] = defaultdict(set)
    for pipe, cell in placed.union(left):
        found[pipe].add(cell)
    return found


def cells_left(pipes: Iterable[str]) -> Mapping[str, list[tuple[str, int]]]:
    """By pipe, each cell that it has left, and the last minute (since the epoch) that may have new messages there."""
    rows = Relocation.objects.filter(pipe__in=list(pipes), switched_at__isnull=False)
    found: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for pipe, cell, finished_at in rows.values_list("pipe_id", "source_id", "finished_at"):
        until = int((finished_at + SETTLING).timestamp() // 60) if finished_at else FOR_EVER
        found[pipe].append((cell, until))
    return found


def topics_of(pipes: Iterable[str], purpose: str) -> QuerySet[Topic]:
    """The topics for one purpose of all cells that these pipes are or were on."""
    ids = list(pipes)
    placed = Pipe.objects.filter(id__in=ids, cell__isnull=False).values("cell")
    left = Relocation.objects.filter(pipe__in=ids, switched_at__isnull=False).values("source")
    return Topic.objects.filter(Q(cell__in=placed) | Q(cell__in=left), purpose=purpose)


def topic_at(pipe: str, purpose: str, generation: int) -> Topic | None:
    """The topic of this generation on which messages of the pipe lie, or None."""
    return topics_of([pipe], purpose).filter(generation=generation).first()


def places_of(cell: str, *purposes: str) -> list[tuple[str, int]]:
    """The (topic, partition) of each partition of the cell's topics for these purposes."""
    topics = Topic.objects.filter(cell=cell, purpose__in=purposes).values_list("name", "partitions")
    return [(name, number) for name, partitions in topics for number in range(partitions)]


def passed_at(topics: Iterable[str]) -> dict[tuple[str, int], int]:
    """The offset below which lanes have settled everything, by (topic, partition); of places that lanes told of."""
    rows = Passed.objects.filter(topic__in=topics).values_list("topic", "partition", "offset")
    return {(topic, partition): offset for topic, partition, offset in rows}


def generation_of(cell: str) -> int:
    """The generation of a cell's topics: what they have, or, before they are made, one that no other cell has."""
    newest = Topic.objects.aggregate(its=Max("generation", filter=Q(cell=cell)), of_all=Max("generation"))
    return newest["its"] or (newest["of_all"] or 0) + 1
