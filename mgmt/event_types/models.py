"""Models of the event types of sources."""

from typing import Final

from django.db import models

from mgmt.pipes.models import Source
from mgmt.registry.models import Subject, SubjectVersion

HOURS_KEPT_D: Final = 31


class SourceEventTypes(models.Model):
    """Event types of a source. `version` grows with each change; the row stays when the last type is removed.

    type_from: place of an event's type: "" (the source has one type), "field:<path>" or "header:<name>"
    """

    source = models.OneToOneField(Source, models.PROTECT, primary_key=True, related_name="event_types")
    type_from = models.CharField(max_length=255, blank=True)
    version = models.PositiveIntegerField(default=0)
    changed_at = models.DateTimeField(auto_now=True)

    def __str__(self) -> str:
        return f"event types of {self.source_id}"


class EventType(models.Model):
    """One event type of a source, and the subject that its events must fit. The name is "" if it is the only one."""

    source = models.ForeignKey(SourceEventTypes, models.PROTECT, related_name="types")
    name = models.CharField(max_length=255, blank=True)
    subject = models.ForeignKey(Subject, models.PROTECT, related_name="event_types")

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["source", "name"], name="event_type_once_per_source")]

    def __str__(self) -> str:
        return self.name


class VersionHour(models.Model):
    """Number of the events of a source that ingest checked with one version in one hour, as ingest reported them."""

    source = models.ForeignKey(Source, models.PROTECT, related_name="version_hours", db_index=False)
    version = models.ForeignKey(SubjectVersion, models.PROTECT, related_name="hours", db_index=False)
    hour = models.IntegerField(help_text="Hours since the epoch, by the clock of ingest.")
    accepted = models.BigIntegerField()
    rejected = models.BigIntegerField(help_text="Of a Kafka source, events that became dead letters.")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["version", "source", "hour"], name="one_count_a_version_hour")]
        indexes = [models.Index(fields=["hour"], name="version_hours_by_hour")]

    def __str__(self) -> str:
        return f"{self.version_id} in hour {self.hour}: {self.accepted} accepted, {self.rejected} rejected"
