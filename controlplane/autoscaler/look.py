"""Reads what the Autoscaler decides from: heartbeats and Kafka's offsets into samples, samples into groups."""

from collections import defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec

from controlplane.autoscaler.decide import IN_WINDOW_S, Group, Memory, Policy
from controlplane.autoscaler.figures import Figure, LaneClock, Sample, figures_of
from controlplane.autoscaler.offsets import Offsets, Place
from dataplane.names import INPUTS_OF, LANE_KINDS, PURPOSES, LaneKind, lane_group
from mgmt.models import Cell, Heartbeat, ScaleGroup, ScaleSample, Topic

FRESH: Final = timedelta(seconds=5)
WINDOW: Final = timedelta(seconds=IN_WINDOW_S + 10)
KEPT: Final = timedelta(hours=2)
GROWING: Final[tuple[LaneKind, ...]] = ("process", "transmit")
GroupKey = tuple[str, LaneKind]  # (cell, kind)


def take_samples(offsets: Offsets, now: datetime) -> int:
    """Store a sample of each group of every cell whose topics are made; how many that were."""
    inputs = _inputs()
    progress = offsets.progress({lane_group(*key): places for key, places in inputs.items()})
    lanes = _lanes(now)
    rows = [
        ScaleSample(
            cell=cell,
            kind=kind,
            at=now,
            lanes=msgspec.to_builtins(lanes[cell, kind]),
            came=progress[lane_group(cell, kind)].came,
            settled=progress[lane_group(cell, kind)].settled,
        )
        for cell, kind in inputs
    ]
    ScaleSample.objects.bulk_create(rows, ignore_conflicts=True)
    ScaleSample.objects.filter(at__lt=now - KEPT).delete()
    return len(rows)


def ensure_groups(most: int) -> None:
    """A policy for each group of every cell. Those that a person has not set allow what there is, up to `most`.

    Only process and transmit grow by themselves: what waits in the others waits for a time or for a destination.
    """
    known = set(ScaleGroup.objects.values_list("cell_id", "kind"))
    missing = [
        ScaleGroup(cell=cell, kind=kind, maximum=max(cell.lanes.get(kind, 1), most if kind in GROWING else 1, 1))
        for cell in Cell.objects.all()
        for kind in LANE_KINDS
        if (cell.id, kind) not in known
    ]
    ScaleGroup.objects.bulk_create(missing, ignore_conflicts=True)


def groups_of(rows: Iterable[ScaleGroup], lanes: dict[str, int], now: datetime) -> dict[LaneKind, Group]:
    """The groups of one cell's rows. `lanes`: how many of each kind are wanted now."""
    return {
        kind_of(row): Group(
            now_s=now.timestamp(),
            lanes=lanes.get(row.kind, 0),
            policy=Policy(row.minimum, row.maximum, row.target, row.goal_s),
            memory=msgspec.convert(row.memory, Memory),
            figures=figures(row.cell_id, row.kind, now - WINDOW),
        )
        for row in rows
    }


def kind_of(row: ScaleGroup) -> LaneKind:
    """The kind of lanes that the row is about."""
    kind: LaneKind = msgspec.convert(row.kind, LaneKind)
    return kind


def figures(cell: str, kind: str, since: datetime) -> list[Figure]:
    """What a group did since then, in order of time.

    Only process and transmit can be behind: in the others messages wait on purpose, and none of them is late.
    """
    rows = ScaleSample.objects.filter(cell=cell, kind=kind, at__gte=since).order_by("at")
    found = figures_of(
        Sample(at.timestamp(), msgspec.convert(lanes, dict[str, LaneClock]), came, settled)
        for at, lanes, came, settled in rows.values_list("at", "lanes", "came", "settled")
    )
    return found if kind in GROWING else [msgspec.structs.replace(figure, backlog=0) for figure in found]


def reporting(cell: str, now: datetime) -> dict[str, int]:
    """How many lanes of each kind of a cell beat now, those that drain too."""
    rows = Heartbeat.objects.filter(cell=cell, at__gte=now - FRESH, state__in=["running", "draining"])
    counts: dict[str, int] = defaultdict(int)
    for kind in rows.values_list("kind", flat=True):
        counts[kind] += 1
    return dict(counts)


def _inputs() -> dict[GroupKey, list[Place]]:
    """What each group reads, in cells that have all of their topics."""
    topics: dict[str, dict[str, list[Place]]] = defaultdict(lambda: defaultdict(list))
    for cell, purpose, name, partitions in Topic.objects.values_list("cell_id", "purpose", "name", "partitions"):
        topics[cell][purpose] += [(name, number) for number in range(partitions)]
    return {
        (cell, kind): [place for purpose in INPUTS_OF[kind] for place in purposes[purpose]]
        for cell, purposes in topics.items()
        if len(purposes) >= len(PURPOSES)
        for kind in LANE_KINDS
    }


def _lanes(now: datetime) -> dict[GroupKey, dict[str, LaneClock]]:
    rows = Heartbeat.objects.filter(at__gte=now - FRESH, state="running", kind__in=LANE_KINDS)
    found: dict[GroupKey, dict[str, LaneClock]] = defaultdict(dict)
    for cell, kind, writer, at, body in rows.values_list("cell", "kind", "writer", "at", "body"):
        clock = LaneClock(body["pid"], at.astimezone(UTC).timestamp(), body["cpu_s"])
        found[cell, msgspec.convert(kind, LaneKind)][writer] = clock
    return found
