"""Counters of limits: one row for each limit and whom it counts, for as long as its window lasts."""

from django.db import models


class LimitCount(models.Model):
    """How often something was done in the window that ends at `ends_at`; then the next one begins at 1.

    `key` is a hash of the limit's name and of whom it counts: no row names an account or an address.
    """

    key = models.CharField(primary_key=True, max_length=64, editable=False)
    count = models.PositiveIntegerField()
    ends_at = models.DateTimeField()

    class Meta:
        indexes = [models.Index(fields=["ends_at"], name="limit_counts_by_age")]

    def __str__(self) -> str:
        return f"{self.count} until {self.ends_at:%H:%M:%S}"
