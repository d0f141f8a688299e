"""Judge all cells from their rows and store the verdicts."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final, cast

import structlog
from django.db.models import Sum

from controlplane.observer.verdict import (
    SILENT,
    CellJudgement,
    CellObservation,
    CellStability,
    ObservedHeartbeat,
    judge,
)
from dataplane.ledger.facts import DIVERTED_TO, INGEST
from dataplane.ledger.sketch import GAMMA, P95, LagSketch
from dataplane.names import ENTRANCE, PROCESS_NODES
from mgmt.ledger.queries.bucket_range import bucket_at
from mgmt.models import Cell, CellVerdict, FactRow, Heartbeat, LagRow, Lease, Pipe, PipeMigration, Seal

LOST_FOR: Final = timedelta(minutes=10)
OLDEST_SEALED: Final = timedelta(hours=1)  # about the longest time from the start of a minute to its seal
log = structlog.get_logger(__name__)


def judge_cells(now: datetime) -> int:
    """Update the verdict on every cell that has ever sent a heartbeat; return how many states changed."""
    before = {row.cell_id: row for row in CellVerdict.objects.all()}
    reporting = [observation for observation in observations(now) if observation.beats or observation.cell in before]
    return sum(_store(observation, before.get(observation.cell), now) for observation in reporting)


def observations(now: datetime) -> list[CellObservation]:
    """Return the observation of every cell, with at most ten queries for any number of cells."""
    beats, any_heartbeat = _beats(now)
    holders = dict(Lease.objects.filter(until__gt=now).values_list("cell_id", "holder"))
    lost, behind = _lost(now), _behind_us(now)
    return [
        CellObservation(
            cell=cell.id,
            lanes=cell.lanes,
            beats=beats[cell.id],
            any_heartbeat=any_heartbeat,
            lost=lost.get(cell.id, 0),
            behind_us=behind.get(cell.id, 0),
            changing=holders.get(cell.id, ""),
            now=now,
        )
        for cell in Cell.objects.order_by("id")
    ]


def _beats(now: datetime) -> tuple[Mapping[str, list[ObservedHeartbeat]], bool]:
    found: dict[str, list[ObservedHeartbeat]] = defaultdict(list)
    newest = None
    for row in Heartbeat.objects.order_by("cell", "writer"):
        beat = ObservedHeartbeat(
            row.writer,
            row.state,
            row.at,
            row.body.get("detail", ""),
            row.body.get("failures", {}),
            row.body.get("lane_kinds", ()),
        )
        found[row.cell].append(beat)
        newest = max(newest or row.at, row.at)
    return found, newest is not None and now - newest <= SILENT


def _lost(now: datetime) -> dict[str, int]:
    """Return the units lost in recently sealed buckets, by cell."""
    since = bucket_at(now - OLDEST_SEALED)
    rows = Seal.objects.filter(bucket__gte=since, sealed_at__gte=now - LOST_FOR, lost__gt=0)
    lost = dict(rows.values_list("pipe_id").annotate(Sum("lost")))
    return _by_cell(lost, sum, now - LOST_FOR)


def _behind_us(now: datetime) -> dict[str, int]:
    """Return the wait for process by cell: p95 of the slowest pipe in this minute and the one before.

    Pipes in the slow lane or in bulk execution are left out: their messages wait so that those of other pipes do not.
    """
    minute = bucket_at(now)
    sketches: dict[tuple[str, str], LagSketch] = defaultdict(LagSketch)
    rows = LagRow.objects.filter(bucket__gte=minute - 1, bucket__lte=minute, node__in=(INGEST, PROCESS_NODES[0]))
    for pipe, node, lag_in, lag_out in rows.values_list("pipe_id", "node", "lag_in", "lag_out"):
        if (encoded := lag_out if node == INGEST else lag_in) is not None:
            sketches[pipe, node].merge(LagSketch.decode(bytes(encoded)))
    waited = {
        pipe: _surely_later_us(sketches[pipe, INGEST].quantile(P95), arrived.quantile(P95))
        for (pipe, node), arrived in list(sketches.items())
        if node != INGEST and arrived.count and sketches[pipe, INGEST].count
    }
    facts = FactRow.objects.filter(bucket__gte=minute - 1, bucket__lte=minute, pipe_id__in=waited)
    diverted = facts.filter(node=ENTRANCE, detail__in=[*DIVERTED_TO])
    for pipe in set(diverted.values_list("pipe_id", flat=True)):
        del waited[pipe]
    return _by_cell(waited, max, now - timedelta(minutes=2))


def _surely_later_us(left_us: int, arrived_us: int) -> int:
    """Return the least difference of two lags, given the error of the sketches.

    Without this, the error on a lag of a year would look like a wait.
    """
    return arrived_us - left_us - round((GAMMA - 1) * (abs(left_us) + abs(arrived_us)))


def _by_cell(of_pipes: Mapping[str, int], combine: Callable[[Iterable[int]], int], since: datetime) -> dict[str, int]:
    """Combine values of pipes by cell; a pipe that was still leaving a cell after `since` counts for that cell.

    The messages that waited longest waited in the cell that the pipe left.
    """
    cells = dict(Pipe.objects.filter(id__in=of_pipes, cell__isnull=False).values_list("id", "cell_id"))
    left = PipeMigration.objects.filter(pipe__in=of_pipes, switched_at__isnull=False).exclude(finished_at__lt=since)
    cells |= dict(left.order_by("id").values_list("pipe_id", "source_id"))
    found: dict[str, list[int]] = defaultdict(list)
    for pipe, cell in cells.items():
        found[str(cell)].append(of_pipes[pipe])
    return {cell: combine(values) for cell, values in found.items()}


def _store(observation: CellObservation, row: CellVerdict | None, now: datetime) -> bool:
    before = (
        CellJudgement(cast(CellStability, row.state), row.reasons, row.silenced, row.since, row.turning, row.kinds)
        if row
        else None
    )
    after = judge(before, observation)
    fields = {name: getattr(after, name) for name in after.__struct_fields__}
    CellVerdict.objects.update_or_create(cell_id=observation.cell, defaults=fields | {"at": now})
    turned = before is None or before.state != after.state
    if turned:
        log.info("verdict", cell=observation.cell, state=after.state, reasons=after.reasons)
    return turned
