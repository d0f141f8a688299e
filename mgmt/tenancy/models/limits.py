"""Model of rate-limit counters: one row per limit and subject, until its window ends."""

from django.db import models


class LimitCount(models.Model):
    """Count of one limit and subject in the window that ends at `ends_at`; the next window begins at 1.

    `key` is a hash of the limit's name and its subject, so that no row names an account or an address.
    """

    key = models.CharField(primary_key=True, max_length=64, editable=False)
    count = models.PositiveIntegerField()
    ends_at = models.DateTimeField()

    class Meta:
        indexes = [models.Index(fields=["ends_at"], name="limit_counts_by_age")]

    def __str__(self) -> str:
        return f"{self.count} until {self.ends_at:%H:%M:%S}"
