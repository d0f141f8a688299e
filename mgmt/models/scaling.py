"""The Autoscaler's rows: what is wanted of each group, what it measured, and what it made of it last."""

from django.db import models
from django.db.models import F, Q

from dataplane.names import INGEST_GROUP
from mgmt.models.cells import Cell


def group_words(kind: str) -> str:
    """What a group is a number of, in words."""
    return "ingest replicas" if kind == INGEST_GROUP else f"{kind} lanes"


class ScaleGroup(models.Model):
    """The lanes of one kind in a cell, or the replicas of ingest: a person's policy, and the Autoscaler's last word.

    `memory` is what its decisions leave to the next one (controlplane.autoscaler.decide.Memory), `seen` what the last
    one saw: {"lanes", "cpu", "came", "settled", "backlog", "lag_s"}, means of the last seconds; {} if nothing.
    """

    cell = models.ForeignKey(Cell, models.PROTECT, related_name="scale_groups")
    kind = models.CharField(max_length=16)
    minimum = models.PositiveSmallIntegerField(default=1)
    maximum = models.PositiveSmallIntegerField()
    target = models.FloatField(default=0.75, help_text="CPU of one lane, in cores.")
    goal_s = models.FloatField(default=5.0, help_text="How far behind the group may be, in seconds.")
    memory = models.JSONField(default=dict)
    seen = models.JSONField(default=dict)
    why = models.CharField(max_length=300, blank=True)
    at = models.DateTimeField(null=True, help_text="When it was decided on last.")

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
        """What the group has many of."""
        return "replica" if self.kind == INGEST_GROUP else "lane"

    @property
    def words(self) -> str:
        """What the group is a number of, in words."""
        return group_words(self.kind)


class ScaleSample(models.Model):
    """Counters of one group at one moment; only their differences mean something. Kept for two hours.

    `lanes`: {writer: {"pid", "at_s", "cpu_s"}}, those that beat; `came`, `settled`: sums of Kafka's offsets; of ingest
    what was stored, and with it what waits in the replicas.
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
