"""Models of cells, their topics and heartbeats: the desired state, and the state that processes report."""

from typing import Any, Final

from django.db import models
from django.db.models import Q, QuerySet

from dataplane.names import INGEST_GROUP
from mgmt.cells.models.releases import Release

MOST_PARTITIONS: Final = 1_000  # of each topic of a cell; a lane that reads 100 is slow (docs/sizing.md)


def default_lanes() -> dict[str, Any]:
    """Return one lane of each kind, which is enough for one box."""
    return {"process": 1, "transmit": 1, "transmit-retry": 1, "retrier": 1, "transmit-slow": 1, "process-slow": 1}


class Cells(models.Manager["Cell"]):
    """Manager that leaves out the row `ingest`, which is not a cell."""

    def get_queryset(self) -> QuerySet["Cell"]:
        """Return the cells without the row `ingest`."""
        return super().get_queryset().exclude(id=INGEST_GROUP)


class Cell(models.Model):
    """One isolated set of topics and the Spark application that serves them.

    `epoch` grows each time the application is submitted again. `fence` is the token of the cell's newest lease; the
    holder of an older lease writes nothing. A cell that is dedicated to one tenant may sleep: it then has no lanes and
    no application until the next message arrives. The row `ingest` is not a cell: it represents the ingest replicas,
    which serve all cells, so that leases, pauses, policies, rollouts and the audit can refer to them as to a cell.
    `objects` leaves it out.
    """

    id = models.CharField(primary_key=True, max_length=20)
    version = models.PositiveIntegerField(default=1)
    epoch = models.PositiveIntegerField(default=1)
    lanes = models.JSONField(default=default_lanes)
    partitions = models.PositiveSmallIntegerField(
        null=True, blank=True, help_text="Partitions of its topics; empty: PENSTOCK_PARTITIONS when they are created."
    )
    fence = models.BigIntegerField(default=0)
    release = models.ForeignKey(
        Release,
        models.PROTECT,
        null=True,
        blank=True,
        related_name="cells",
        help_text="Release that its application runs.",
    )
    canary = models.ForeignKey(
        Release,
        models.PROTECT,
        null=True,
        blank=True,
        related_name="+",
        help_text="Release that only the first replica of ingest runs.",
    )
    dedicated_to = models.ForeignKey(
        "mgmt.Tenant",
        models.PROTECT,
        null=True,
        blank=True,
        related_name="cells",
        help_text="The only tenant whose pipes are placed on it.",
    )
    sleeps_after_s = models.PositiveIntegerField(
        null=True, blank=True, help_text="Seconds without work after which it sleeps; empty: never."
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
        """True if the cell should have no lanes."""
        return not any(self.lanes.values())

    @property
    def sleeps_after_min(self) -> int | None:
        """`sleeps_after_s` in minutes, the unit of the console."""
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
    """Newest heartbeat of each running process (dataplane.ledger.heartbeat); `cell` is "" for ingest replicas."""

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
