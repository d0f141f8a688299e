"""The Autoscaler's Celery task: sample, finish, decide, act."""

import contextlib
from collections import defaultdict
from datetime import UTC, datetime
from functools import cache, partial
from typing import Final

import structlog
from celery import shared_task
from confluent_kafka import KafkaException
from msgspec import Struct

from controlplane.autoscaler.act import act, finish
from controlplane.autoscaler.decide import decide
from controlplane.autoscaler.fleet import relieve
from controlplane.autoscaler.look import NEXT_LEVEL, ensure_groups, ensure_ingest, groups_of, reporting, take_samples
from controlplane.autoscaler.offsets import Offsets
from controlplane.autoscaler.resting import rest_of
from controlplane.autoscaler.sleeping import next_turn
from controlplane.compute.files import BrokenFileError, ComputeFiles
from controlplane.locks import alone
from controlplane.settings import control_settings
from dataplane.names import INGEST_GROUP
from mgmt.models import Cell, ScaleGroup
from mgmt.provisioning.placing import PlacingPolicy

LOCK: Final = "autoscaler.tick"
log = structlog.get_logger(__name__)


class IngestKeeper(Struct, frozen=True):
    """The box's supervisor, told by a file. `most`: replicas where nobody has said."""

    files: ComputeFiles
    most: int

    def ask_for(self, count: int) -> None:
        """Write it down if it is news; said at each tick, so that a file that was lost comes back."""
        with contextlib.suppress(BrokenFileError):
            if self.files.replicas() == count:
                return
        self.files.wish_replicas(count)


class Limits(Struct, frozen=True):
    """Lanes of a kind where nobody has said, cells that are open to all, and how pipes are placed on them."""

    lanes: int
    cells: int = 1
    placing: PlacingPolicy = PlacingPolicy()


class Autoscaler:
    """One process's client. What it remembers is in the rows."""

    def __init__(self, offsets: Offsets, limits: Limits, ingest: IngestKeeper | None = None) -> None:
        """`ingest`: who keeps its replicas, if they may be scaled."""
        self._offsets = offsets
        self._limits = limits
        self._ingest = ingest

    def tick(self, now: datetime) -> str:
        """One pass under the lock. Returns what was done, in words."""
        try:
            return alone(LOCK, partial(self._run, now))
        except KafkaException as exc:
            log.warning("tick cut short", reason=f"waiting for Kafka: {exc}")
            return "waiting for Kafka"

    def _run(self, now: datetime) -> str:
        ensure_groups(self._limits.lanes)
        if self._ingest:
            ensure_ingest(self._ingest.most)
        take_samples(self._offsets, now, of_ingest=self._ingest is not None)
        rows: dict[str, list[ScaleGroup]] = defaultdict(list)
        for row in ScaleGroup.objects.order_by("cell_id", "kind"):
            rows[row.cell_id].append(row)
        beyond = relieve(self._limits.placing, self._limits.cells, now)
        done = []
        for cell in (Cell.with_ingest if self._ingest else Cell.objects).order_by("id"):
            finish(cell.id, cell.lanes, reporting(cell.id, now), now)
            groups = groups_of(rows[cell.id], cell.lanes, now, beyond=beyond.get(cell.id, NEXT_LEVEL))
            rest = rest_of(cell, now)
            turn = next_turn(rest) if rest else None
            done.append(act(cell.id, groups, {kind: decide(group, turn) for kind, group in groups.items()}, now))
        if self._ingest:
            self._ingest.ask_for(Cell.with_ingest.get(id=INGEST_GROUP).lanes[INGEST_GROUP])
        return "; ".join(filter(None, done)) or "nothing to do"


@cache
def autoscaler() -> Autoscaler:
    """This process's Autoscaler; its client is made at the first tick, never before a fork."""
    settings = control_settings()
    ingest = IngestKeeper(ComputeFiles(settings.var), settings.ingest_max) if settings.ingest_max else None
    lanes = min(settings.lanes_max, settings.topics.partitions)
    return Autoscaler(Offsets(settings.kafka), Limits(lanes, settings.cells_max, settings.placing), ingest)


@shared_task(name="autoscaler.tick")
def tick() -> str:
    """Sample every group, and change the number of its lanes, or of ingest's replicas, where that is due.

    Safe to run twice and to be killed anywhere: ticks that overlap skip, by a lock that dies with its holder; a change
    is one transaction behind the cell's fence, and the lease that outlives it runs out. A tick that was missed leaves a
    longer span between two samples, nothing else.
    """
    return autoscaler().tick(datetime.now(UTC))
