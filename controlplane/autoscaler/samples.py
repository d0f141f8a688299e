"""Reads the Autoscaler's input: heartbeats and Kafka's offsets into samples, samples into groups."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

import msgspec
from django.db.models import QuerySet

from controlplane.autoscaler.decide import IN_WINDOW_S, DecisionMemory, LaneGroup, ScalePolicy
from controlplane.autoscaler.figures import GroupRates, GroupSample, LaneClock, clock_of, figures_of
from controlplane.autoscaler.offsets import OffsetReader
from dataplane.names import INGEST_GROUP, INPUTS_OF, LANE_KINDS, PURPOSES, GroupKind, LaneKind, PartitionKey, lane_group
from mgmt.cells.services.releases import take_ingest_out
from mgmt.models import Cell, Heartbeat, Release, ScaleGroup, ScaleSample, Topic

FRESH: Final = timedelta(seconds=5)
WINDOW: Final = timedelta(seconds=IN_WINDOW_S + 10)
KEPT: Final = timedelta(hours=2)
GROWING: Final[tuple[GroupKind, ...]] = ("process", "transmit", INGEST_GROUP)
NEXT_LEVEL: Final = "the next step is another cell"
INGEST_LEAST: Final = 2  # one replica may crash
INGEST_TARGET: Final = 0.6  # low, because senders have to wait while another replica starts
INGEST_GOAL_S: Final = 1.0
GroupKey = tuple[str, LaneKind]  # (cell, kind)


def take_samples(offsets: OffsetReader, now: datetime, *, of_ingest: bool = False) -> int:
    """Store a sample of each group of every cell whose topics are made, and of ingest; return their number.

    Raises KafkaException while the brokers do not answer.
    """
    inputs = _inputs()
    progress = offsets.progress({lane_group(*key): partitions for key, partitions in inputs.items()})
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
    if of_ingest:
        stored = sum(progress[lane_group(*key)].came for key in inputs if key[1] == "process")
        rows.append(_of_ingest(stored, now))
    ScaleSample.objects.bulk_create(rows, ignore_conflicts=True)
    ScaleSample.objects.filter(at__lt=now - KEPT).delete()
    return len(rows)


def _of_ingest(stored: int, now: datetime) -> ScaleSample:
    """Return ingest's sample: events stored in the process lanes' inputs are settled, the rest waits in replicas."""
    rows = list(_beating(now, "running").filter(kind=INGEST_GROUP))
    waiting = sum(row.body.get("unsettled", 0) for row in rows)
    clocks = msgspec.to_builtins({row.writer: clock_of(row.at, row.body) for row in rows})
    came = stored + waiting
    return ScaleSample(cell=INGEST_GROUP, kind=INGEST_GROUP, at=now, lanes=clocks, came=came, settled=stored)


def ensure_ingest(most: int, installed: str = "") -> None:
    """Make the row by which ingest is scaled and gets releases, and its policy unless a person has set one.

    `installed`: its first release, which the replicas run until they get another.
    """
    least = min(INGEST_LEAST, most)
    row, _ = Cell.with_ingest.get_or_create(id=INGEST_GROUP, defaults={"lanes": {INGEST_GROUP: least}})
    policy = {"minimum": least, "maximum": most, "target": INGEST_TARGET, "goal_s": INGEST_GOAL_S}
    ScaleGroup.objects.get_or_create(cell=row, kind=INGEST_GROUP, defaults=policy)
    if row.release_id is None and (first := Release.objects.filter(id=installed).first()):
        Cell.with_ingest.filter(id=INGEST_GROUP, release=None).update(release=first)


def forget_ingest_release() -> None:
    """Leave ingest out of rollouts: others run its replicas."""
    if Cell.with_ingest.filter(id=INGEST_GROUP, release__isnull=False).update(release=None, canary=None):
        take_ingest_out()


def ensure_groups(most: int, partitions: int | None = None) -> None:
    """Make a policy for each group of every cell that has none: it allows the present lanes, and up to `most`.

    It allows no more lanes than partitions, of which a cell has `partitions` unless its row has another number. Only
    process and transmit are scaled out automatically: messages of the other groups wait for a time or for a
    destination.
    """
    known = set(ScaleGroup.objects.values_list("cell_id", "kind"))
    missing = [
        ScaleGroup(cell=cell, kind=kind, maximum=max(cell.lanes.get(kind, 1), _most(cell, most, partitions, kind), 1))
        for cell in Cell.objects.all()
        for kind in LANE_KINDS
        if (cell.id, kind) not in known
    ]
    ScaleGroup.objects.bulk_create(missing, ignore_conflicts=True)


def _most(cell: Cell, most: int, partitions: int | None, kind: LaneKind) -> int:
    return min(most, cell.partitions or partitions or most) if kind in GROWING else 1


def groups_of(
    rows: Iterable[ScaleGroup], lanes: dict[str, int], now: datetime, *, beyond: str = NEXT_LEVEL
) -> dict[GroupKind, LaneGroup]:
    """Return the groups of one cell's rows. `lanes`: desired number by kind; `beyond`: what follows at the maximum."""
    return {
        kind_of(row): LaneGroup(
            now_s=now.timestamp(),
            lanes=lanes.get(row.kind, 0),
            policy=ScalePolicy(row.minimum, row.maximum, row.target, row.goal_s),
            memory=msgspec.convert(row.memory, DecisionMemory),
            figures=figures(row.cell_id, row.kind, now - WINDOW),
            unit=row.unit,
            beyond=beyond if row.unit == "lane" else "the policy allows no more replicas",
        )
        for row in rows
    }


def kind_of(row: ScaleGroup) -> GroupKind:
    """Return the row's kind of lanes, as a checked literal."""
    kind: GroupKind = msgspec.convert(row.kind, GroupKind)
    return kind


def figures(cell: str, kind: str, since: datetime) -> list[GroupRates]:
    """Return the rates of a group since then, in order of time.

    Only process, transmit and ingest can be behind: in the other groups messages wait on purpose, so backlog is 0.
    """
    rows = ScaleSample.objects.filter(cell=cell, kind=kind, at__gte=since).order_by("at")
    found = figures_of(
        GroupSample(at.timestamp(), msgspec.convert(lanes, dict[str, LaneClock]), came, settled)
        for at, lanes, came, settled in rows.values_list("at", "lanes", "came", "settled")
    )
    return found if kind in GROWING else [msgspec.structs.replace(figure, backlog=0) for figure in found]


def reporting(cell: str, now: datetime) -> dict[str, int]:
    """Return how many lanes of each kind of a cell (or replicas of ingest) report now; draining ones count, too."""
    rows = _beating(now, "running", "draining").filter(cell="" if cell == INGEST_GROUP else cell)
    return dict(Counter(rows.values_list("kind", flat=True)))


def _beating(now: datetime, *states: str) -> QuerySet[Heartbeat]:
    return Heartbeat.objects.filter(at__gte=now - FRESH, state__in=states)


def _inputs() -> dict[GroupKey, list[PartitionKey]]:
    """Return the partitions that each group reads, for cells that have all of their topics."""
    topics: dict[str, dict[str, list[PartitionKey]]] = defaultdict(lambda: defaultdict(list))
    for cell, purpose, name, partitions in Topic.objects.values_list("cell_id", "purpose", "name", "partitions"):
        topics[cell][purpose] += [(name, number) for number in range(partitions)]
    return {
        (cell, kind): [partition for purpose in INPUTS_OF[kind] for partition in purposes[purpose]]
        for cell, purposes in topics.items()
        if len(purposes) >= len(PURPOSES)
        for kind in LANE_KINDS
    }


def _lanes(now: datetime) -> dict[GroupKey, dict[str, LaneClock]]:
    found: dict[GroupKey, dict[str, LaneClock]] = defaultdict(dict)
    for row in _beating(now, "running").filter(kind__in=LANE_KINDS):
        found[row.cell, msgspec.convert(row.kind, LaneKind)][row.writer] = clock_of(row.at, row.body)
    return found
