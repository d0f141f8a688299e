"""Cells and what runs in them, as the control plane wants it and as heartbeats report it."""

from typing import Any

from django.db import models
from django.db.models import Q, QuerySet

from dataplane.names import INGEST_GROUP
from mgmt.models.releases import Release


def default_lanes() -> dict[str, Any]:
    """One lane of each kind: enough for one box."""
    return {"process": 1, "transmit": 1, "transmit-retry": 1, "retrier": 1, "transmit-slow": 1, "process-slow": 1}


class Cells(models.Manager["Cell"]):
    """The rows that are cells."""

    def get_queryset(self) -> QuerySet["Cell"]:
        return super().get_queryset().exclude(id=INGEST_GROUP)


class Cell(models.Model):
    """One isolated set of topics and a Spark application.

    `epoch` grows when the application is submitted anew. `fence` is the token of the cell's newest lease: who holds an
    older one writes nothing any more. A cell that is kept for one tenant may sleep: then it has no lanes and no
    application, until something comes. The row `ingest` is no cell: it stands for the replicas that serve all of them,
    so that leases, pauses, policies and the audit name them as they name a cell. `objects` leaves it out.
    """

    id = models.CharField(primary_key=True, max_length=20)
    version = models.PositiveIntegerField(default=1)
    epoch = models.PositiveIntegerField(default=1)
    lanes = models.JSONField(default=default_lanes)
    fence = models.BigIntegerField(default=0)
    release = models.ForeignKey(
        Release, models.PROTECT, null=True, blank=True, related_name="cells", help_text="What its application runs."
    )
    dedicated_to = models.ForeignKey(
        "mgmt.Tenant", models.PROTECT, null=True, blank=True, related_name="cells", help_text="The one it is kept for."
    )
    sleeps_after_s = models.PositiveIntegerField(
        null=True, blank=True, help_text="Without anything to do; empty: it never sleeps."
    )
    created_at = models.DateTimeField(auto_now_add=True)

    objects = Cells()
    with_ingest = models.Manager["Cell"]()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(sleeps_after_s=None) | Q(dedicated_to__isnull=False), name="only_a_dedicated_cell_sleeps"
            ),
        ]

    def __str__(self) -> str:
        return self.id

    @property
    def is_asleep(self) -> bool:
        """Whether it is to have no lanes at all."""
        return not any(self.lanes.values())

    @property
    def sleeps_after_min(self) -> int | None:
        """Its policy in minutes, as people set it."""
        return None if self.sleeps_after_s is None else self.sleeps_after_s // 60


class Topic(models.Model):
    """One generation of one of a cell's topics, bound to Kafka's topic id."""

    cell = models.ForeignKey(Cell, models.PROTECT, related_name="topics")
    purpose = models.CharField(max_length=12)
    generation = models.PositiveIntegerField(default=1)
    name = models.CharField(max_length=120, unique=True)
    topic_id = models.CharField(max_length=40)
    partitions = models.PositiveIntegerField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["cell", "purpose", "generation"], name="topic_generation_once_per_cell"),
        ]

    def __str__(self) -> str:
        return self.name


class Heartbeat(models.Model):
    """The newest heartbeat of each running process (dataplane.ledger.heartbeat), cell "" for ingest replicas."""

    cell = models.CharField(max_length=20, blank=True)
    writer = models.CharField(max_length=60)
    kind = models.CharField(max_length=16)
    epoch = models.PositiveIntegerField()
    incarnation = models.CharField(max_length=40)
    state = models.CharField(max_length=10)
    table_offset = models.BigIntegerField()
    at = models.DateTimeField()
    body = models.JSONField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["cell", "writer"], name="one_heartbeat_per_writer")]

    def __str__(self) -> str:
        return f"{self.cell}/{self.writer} {self.state}"
