"""Models of the Autoscaler: the policy of each group, its samples and its newest decision."""

from django.db import models
from django.db.models import F, Q

from dataplane.names import INGEST_GROUP
from mgmt.cells.models.cells import Cell


def group_words(kind: str) -> str:
    """Return the plural name of a group's units: `process lanes`, `ingest replicas`."""
    return "ingest replicas" if kind == INGEST_GROUP else f"{kind} lanes"


class ScaleGroup(models.Model):
    """The lanes of one kind in a cell, or the ingest replicas: a person's policy, and the Autoscaler's last decision.

    `memory` is the state that one decision leaves for the next (controlplane.autoscaler.decide.DecisionMemory); `seen`
    has the measurements of the last one: {"lanes", "cpu", "came", "settled", "backlog", "lag_s"}, means of the last
    seconds; {} without any.
    """

    cell = models.ForeignKey(Cell, models.PROTECT, related_name="scale_groups")
    kind = models.CharField(max_length=16)
    minimum = models.PositiveSmallIntegerField(default=1)
    maximum = models.PositiveSmallIntegerField()
    target = models.FloatField(default=0.75, help_text="Target CPU of one lane, in cores.")
    goal_s = models.FloatField(default=5.0, help_text="Highest permitted lag of the group, in seconds.")
    memory = models.JSONField(default=dict)
    seen = models.JSONField(default=dict)
    why = models.CharField(max_length=300, blank=True)
    at = models.DateTimeField(null=True, help_text="When the Autoscaler last decided.")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["cell", "kind"], name="one_policy_per_group_of_lanes"),
            models.CheckConstraint(
                condition=Q(minimum__gte=1) & Q(maximum__gte=F("minimum")), name="a_group_has_a_lane_and_a_most"
            ),
            models.CheckConstraint(
                condition=Q(target__gt=0) & Q(target__lte=1) & Q(goal_s__gt=0), name="a_policy_can_be_met"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.cell_id}/{self.kind}"

    @property
    def unit(self) -> str:
        """Singular name of the group's units."""
        return "replica" if self.kind == INGEST_GROUP else "lane"

    @property
    def words(self) -> str:
        """Plural name of the group's units."""
        return group_words(self.kind)


class ScaleSample(models.Model):
    """Counters of one group at one moment; only their differences are meaningful. Kept for two hours.

    `lanes`: {writer: {"pid", "at_s", "cpu_s"}} of the lanes that send heartbeats. `came`, `settled`: sums of Kafka
    offsets; for ingest, `settled` counts stored events and `came` also those that wait in the replicas.
    """

    cell = models.CharField(max_length=20)
    kind = models.CharField(max_length=16)
    at = models.DateTimeField()
    lanes = models.JSONField()
    came = models.BigIntegerField()
    settled = models.BigIntegerField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["cell", "kind", "at"], name="one_sample_at_a_time")]

    def __str__(self) -> str:
        return f"{self.cell}/{self.kind} {self.at:%H:%M:%S}"
