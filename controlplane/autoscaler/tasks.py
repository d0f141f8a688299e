"""The Autoscaler's Celery task: sample, finish, decide, act."""

import contextlib
from collections import defaultdict
from datetime import UTC, datetime
from functools import cache, partial
from typing import Final

import structlog
from celery import shared_task
from confluent_kafka import KafkaException
from msgspec import Struct, structs

from controlplane.autoscaler.act import act, finish
from controlplane.autoscaler.decide import decide
from controlplane.autoscaler.fleet import relieve
from controlplane.autoscaler.offsets import OffsetReader
from controlplane.autoscaler.samples import (
    NEXT_LEVEL,
    ensure_groups,
    ensure_ingest,
    forget_ingest_release,
    groups_of,
    reporting,
    take_samples,
)
from controlplane.autoscaler.sleep_inputs import idle_state
from controlplane.autoscaler.sleeping import next_sleep_change
from controlplane.compute.files import ComputeFiles, DesiredReplicas, StateFileError
from controlplane.ingest_replicas import desired_replicas, ingest_row
from controlplane.locks import TaskWaitingError, alone
from controlplane.settings import control_settings
from mgmt.cells.placement import PlacementPolicy
from mgmt.models import Cell, ScaleGroup

LOCK: Final = "autoscaler.tick"
log = structlog.get_logger(__name__)


class IngestSupervisor(Struct, frozen=True):
    """Client of the box's supervisor, through a file.

    most:      maximum of replicas unless staff set another
    installed: release of the installed code
    """

    files: ComputeFiles
    most: int
    installed: str = ""

    def ask_for(self, desired: DesiredReplicas) -> None:
        """Ask for these replicas; called at each tick, so that a lost file is written again."""
        desired = structs.replace(desired, installed=self.installed)
        with contextlib.suppress(StateFileError):
            if self.files.replicas() == desired:
                return
        self.files.request_replicas(desired)


class ScaleLimits(Struct, frozen=True):
    """Maximum of lanes per kind unless staff set another, maximum of cells open to all, and the placement policy.

    partitions: of the topics of a cell for which staff chose no other number
    """

    lanes: int
    cells: int = 1
    placing: PlacementPolicy = PlacementPolicy()
    partitions: int | None = None


class Autoscaler:
    """The Autoscaler's clients in one process; its memory is in the rows."""

    def __init__(self, offsets: OffsetReader, limits: ScaleLimits, ingest: IngestSupervisor | None = None) -> None:
        """`ingest`: client of the supervisor of its replicas; None if the Autoscaler does not scale them."""
        self._offsets = offsets
        self._limits = limits
        self._ingest = ingest

    def tick(self, now: datetime) -> str:
        """Run one pass under the lock; return a summary of the changes."""
        return alone(LOCK, partial(self._run, now))

    def _run(self, now: datetime) -> str:
        try:
            return self._scale(now)
        except KafkaException as exc:
            log.warning("tick cut short", reason=f"waiting for Kafka: {exc}")
            raise TaskWaitingError("waiting for Kafka") from exc

    def _scale(self, now: datetime) -> str:
        ensure_groups(self._limits.lanes, self._limits.partitions)
        if self._ingest:  # first, because a release waits for it, and what follows may wait for Kafka
            ensure_ingest(self._ingest.most, self._ingest.installed)
            self._ingest.ask_for(desired_replicas(ingest_row()))
        else:
            forget_ingest_release()
        take_samples(self._offsets, now, of_ingest=self._ingest is not None)
        rows: dict[str, list[ScaleGroup]] = defaultdict(list)
        for row in ScaleGroup.objects.order_by("cell_id", "kind"):
            rows[row.cell_id].append(row)
        beyond = relieve(self._limits.placing, self._limits.cells, now)
        done = []
        for cell in (Cell.with_ingest if self._ingest else Cell.objects).order_by("id"):
            finish(cell.id, cell.lanes, reporting(cell.id, now), now)
            groups = groups_of(rows[cell.id], cell.lanes, now, beyond=beyond.get(cell.id, NEXT_LEVEL))
            candidate = idle_state(cell, now)
            sleep_change = next_sleep_change(candidate) if candidate else None
            decisions = {kind: decide(group, sleep_change) for kind, group in groups.items()}
            done.append(act(cell.id, groups, decisions, now))
        if self._ingest:
            self._ingest.ask_for(desired_replicas(ingest_row()))
        return "; ".join(filter(None, done))


@cache
def autoscaler() -> Autoscaler:
    """Return this process's Autoscaler; its client is created at the first tick, never before a fork."""
    settings = control_settings()
    files, most, installed = ComputeFiles(settings.var), settings.ingest_max, settings.installed_release
    ingest = IngestSupervisor(files, most, installed) if most else None
    limits = ScaleLimits(settings.lanes_max, settings.cells_max, settings.placing, settings.topics.partitions)
    return Autoscaler(OffsetReader(settings.kafka), limits, ingest)


@shared_task(name="autoscaler.tick")
def tick() -> str:
    """Sample every group, and change the number of its lanes, or of ingest's replicas, where that is due.

    Safe to run twice and to be killed anywhere: an overlapping tick skips, by a lock that Postgres releases when its
    holder exits; a change is one transaction behind the cell's fence, and a lease that outlives it expires. A missed
    tick only leaves a longer span between two samples.
    """
    return autoscaler().tick(datetime.now(UTC))
