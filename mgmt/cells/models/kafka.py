"""Model of the last check of Kafka's brokers: written by a periodic task, read by the status board."""

from django.db import models


class KafkaCheck(models.Model):
    """Last check of a Kafka cluster. While it is unreachable, brokers and partitions are those of the last response."""

    MAIN = "main"  # the only cluster

    class State(models.TextChoices):
        HEALTHY = "healthy"
        DEGRADED = "degraded"  # a broker is missing, or a partition lacks a leader or an in-sync replica
        UNREACHABLE = "unreachable"

    cluster = models.CharField(primary_key=True, max_length=20)
    at = models.DateTimeField(help_text="Time of the check.")
    state = models.CharField(max_length=11, choices=State)
    since = models.DateTimeField(help_text="When the cluster entered this state.")
    error = models.CharField(max_length=200, blank=True, help_text="Why no broker answered.")
    brokers = models.JSONField(default=list, help_text="[{id, address, alive}] as of the last answer.")
    partitions = models.PositiveIntegerField(default=0)
    under_replicated = models.PositiveIntegerField(
        default=0, help_text="Partitions with fewer in-sync replicas than replicas."
    )
    leaderless = models.PositiveIntegerField(default=0, help_text="Partitions that nothing can be read from.")
    examples = models.JSONField(default=list, help_text="[topic/partition, ...] of some of these, worst first.")

    def __str__(self) -> str:
        return f"{self.cluster}: {self.state}"
