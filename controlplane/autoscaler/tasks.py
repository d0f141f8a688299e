"""The Autoscaler's Celery task: sample, finish, decide, act."""

from collections import defaultdict
from datetime import UTC, datetime
from functools import cache, partial
from typing import Final

import structlog
from celery import shared_task
from confluent_kafka import KafkaException

from controlplane.autoscaler.act import act, finish
from controlplane.autoscaler.decide import decide
from controlplane.autoscaler.look import ensure_groups, groups_of, reporting, take_samples
from controlplane.autoscaler.offsets import Offsets
from controlplane.locks import alone
from controlplane.settings import control_settings
from mgmt.models import Cell, ScaleGroup

LOCK: Final = "autoscaler.tick"
log = structlog.get_logger(__name__)


class Autoscaler:
    """One process's client. What it remembers is in the rows."""

    def __init__(self, offsets: Offsets, most: int) -> None:
        self._offsets = offsets
        self._most = most

    def tick(self, now: datetime) -> str:
        """One pass under the lock. Returns what was done, in words."""
        try:
            return alone(LOCK, partial(self._run, now))
        except KafkaException as exc:
            log.warning("tick cut short", reason=f"waiting for Kafka: {exc}")
            return "waiting for Kafka"

    def _run(self, now: datetime) -> str:
        ensure_groups(self._most)
        take_samples(self._offsets, now)
        rows: dict[str, list[ScaleGroup]] = defaultdict(list)
        for row in ScaleGroup.objects.order_by("cell_id", "kind"):
            rows[row.cell_id].append(row)
        done = []
        for cell in Cell.objects.order_by("id"):
            finish(cell.id, cell.lanes, reporting(cell.id, now), now)
            groups = groups_of(rows[cell.id], cell.lanes, now)
            done.append(act(cell.id, groups, {kind: decide(group) for kind, group in groups.items()}, now))
        return "; ".join(filter(None, done)) or "nothing to do"


@cache
def autoscaler() -> Autoscaler:
    """This process's Autoscaler; its client is made at the first tick, never before a fork."""
    settings = control_settings()
    return Autoscaler(Offsets(settings.kafka), min(settings.lanes_max, settings.topics.partitions))


@shared_task(name="autoscaler.tick")
def tick() -> str:
    """Sample every group of lanes, and change the number of lanes where that is due.

    Safe to run twice and to be killed anywhere: ticks that overlap skip, by a lock that dies with its holder; a change
    is one transaction behind the cell's fence, and the lease that outlives it runs out. A tick that was missed leaves a
    longer span between two samples, nothing else.
    """
    return autoscaler().tick(datetime.now(UTC))
