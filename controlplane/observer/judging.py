"""Looks at the cells' rows and writes the verdicts."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final, cast

import structlog
from django.db.models import Sum

from controlplane.observer.verdict import SILENT, Beat, Judged, Look, State, judge
from dataplane.ledger.facts import INGEST, SLOW
from dataplane.ledger.sketch import GAMMA, P95, Sketch
from dataplane.names import ENTRANCE, PROCESS_NODES
from mgmt.models import Cell, FactRow, Heartbeat, LagRow, Lease, Pipe, Relocation, Seal, Verdict
from mgmt.queries.span import bucket_at

LOST_FOR: Final = timedelta(minutes=10)
OLDEST_SEALED: Final = timedelta(hours=1)  # a minute that is sealed now began at most about so long ago
log = structlog.get_logger(__name__)


def judge_cells(now: datetime) -> int:
    """Renew the verdict on every cell of which anything was ever heard; how many turned."""
    before = {row.cell_id: row for row in Verdict.objects.all()}
    heard = [look for look in looks(now) if look.beats or look.cell in before]
    return sum(_store(look, before.get(look.cell), now) for look in heard)


def looks(now: datetime) -> list[Look]:
    """What is known of every cell: ten queries at most, however many there are."""
    beats, anything_heard = _beats(now)
    holders = dict(Lease.objects.filter(until__gt=now).values_list("cell_id", "holder"))
    lost, behind = _lost(now), _behind_us(now)
    return [
        Look(
            cell=cell.id,
            lanes=cell.lanes,
            beats=beats[cell.id],
            anything_heard=anything_heard,
            lost=lost.get(cell.id, 0),
            behind_us=behind.get(cell.id, 0),
            changing=holders.get(cell.id, ""),
            now=now,
        )
        for cell in Cell.objects.order_by("id")
    ]


def _beats(now: datetime) -> tuple[Mapping[str, list[Beat]], bool]:
    found: dict[str, list[Beat]] = defaultdict(list)
    newest = None
    for row in Heartbeat.objects.order_by("cell", "writer"):
        said = Beat(
            row.writer,
            row.state,
            row.at,
            row.body.get("detail", ""),
            row.body.get("failures", {}),
            row.body.get("lane_kinds", ()),
        )
        found[row.cell].append(said)
        newest = max(newest or row.at, row.at)
    return found, newest is not None and now - newest <= SILENT


def _lost(now: datetime) -> dict[str, int]:
    """By cell: what is missing in minutes that were sealed of late."""
    since = bucket_at(now - OLDEST_SEALED)
    rows = Seal.objects.filter(bucket__gte=since, sealed_at__gte=now - LOST_FOR, lost__gt=0)
    lost = dict(rows.values_list("pipe_id").annotate(Sum("lost")))
    return _by_cell(lost, sum, now - LOST_FOR)


def _behind_us(now: datetime) -> dict[str, int]:
    """By cell: how long messages waited for process in this minute and the one before, p95, of its slowest pipe.

    Pipes that the slow lane runs are left out: that they wait is what keeps the others from waiting.
    """
    minute = bucket_at(now)
    sketches: dict[tuple[str, str], Sketch] = defaultdict(Sketch)
    rows = LagRow.objects.filter(bucket__gte=minute - 1, bucket__lte=minute, node__in=(INGEST, PROCESS_NODES[0]))
    for pipe, node, lag_in, lag_out in rows.values_list("pipe_id", "node", "lag_in", "lag_out"):
        if (encoded := lag_out if node == INGEST else lag_in) is not None:
            sketches[pipe, node].merge(Sketch.decode(bytes(encoded)))
    waited = {
        pipe: _surely_later_us(sketches[pipe, INGEST].quantile(P95), arrived.quantile(P95))
        for (pipe, node), arrived in list(sketches.items())
        if node != INGEST and arrived.count and sketches[pipe, INGEST].count
    }
    diverted = FactRow.objects.filter(bucket__gte=minute - 1, bucket__lte=minute, pipe_id__in=waited, detail=SLOW)
    for pipe in set(diverted.filter(node=ENTRANCE).values_list("pipe_id", flat=True)):
        del waited[pipe]
    return _by_cell(waited, max, now - timedelta(minutes=2))


def _surely_later_us(left_us: int, arrived_us: int) -> int:
    """By how much one lag exceeds the other whatever the sketches are off by: events of last year are not behind."""
    return arrived_us - left_us - round((GAMMA - 1) * (abs(left_us) + abs(arrived_us)))


def _by_cell(of_pipes: Mapping[str, int], together: Callable[[Iterable[int]], int], since: datetime) -> dict[str, int]:
    """Of pipes that were still leaving a cell after `since` it is that cell's: what waited longest waited there."""
    cells = dict(Pipe.objects.filter(id__in=of_pipes, cell__isnull=False).values_list("id", "cell_id"))
    left = Relocation.objects.filter(pipe__in=of_pipes, switched_at__isnull=False).exclude(finished_at__lt=since)
    cells |= dict(left.order_by("id").values_list("pipe_id", "source_id"))
    found: dict[str, list[int]] = defaultdict(list)
    for pipe, cell in cells.items():
        found[str(cell)].append(of_pipes[pipe])
    return {cell: together(values) for cell, values in found.items()}


def _store(look: Look, row: Verdict | None, now: datetime) -> bool:
    before = Judged(cast(State, row.state), row.reasons, row.silenced, row.since, row.turning) if row else None
    after = judge(before, look)
    fields = {name: getattr(after, name) for name in after.__struct_fields__}
    Verdict.objects.update_or_create(cell_id=look.cell, defaults=fields | {"at": now})
    turned = before is None or before.state != after.state
    if turned:
        log.info("verdict", cell=look.cell, state=after.state, reasons=after.reasons)
    return turned
