"""Common part of the models of runs that the driver of a cell carries out: replays and shadow runs."""

from collections.abc import Collection
from typing import Any, ClassVar

from django.conf import settings
from django.db import models

from mgmt.cells.models.cells import Cell


class CellRun(models.Model):
    """Run that the driver of a cell carries out. It reports its progress.

    state:   each kind of run has its own states; `running` is one of them
    reached: "<topic>/<partition>" -> all events below this offset are done
    ends:    "<topic>/<partition>" -> the offset at which the run ends there
    """

    UNDER_WAY: ClassVar[Collection[str]]
    state: Any

    cell = models.ForeignKey(Cell, models.PROTECT, related_name="+", help_text="Cell whose driver runs it.")
    by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, null=True, related_name="+")
    created_at = models.DateTimeField()
    state_since = models.DateTimeField()
    version = models.PositiveIntegerField(default=1)
    started_at = models.DateTimeField(null=True, help_text="Time from which the driver knew its ends.")
    progress_at = models.DateTimeField(null=True, help_text="Time of the latest progress.")
    finished_at = models.DateTimeField(null=True)
    reached = models.JSONField(default=dict)
    ends = models.JSONField(default=dict)
    read = models.BigIntegerField(default=0, help_text="Records read, also those of other pipes.")
    error = models.CharField(max_length=300, blank=True)

    class Meta:
        abstract = True

    @property
    def is_under_way(self) -> bool:
        """True until the driver has reported its end."""
        return self.state in self.UNDER_WAY

    @property
    def is_waiting(self) -> bool:
        """True if it is running and the driver has not begun; `error` may say what it waits for."""
        return self.state == "running" and self.started_at is None

    @property
    def unread(self) -> int:
        """Records up to its ends that are not read yet; 0 if the ends are not known."""
        return sum(max(0, end - self.reached.get(place, end)) for place, end in self.ends.items())

    @property
    def read_part(self) -> float | None:
        """Read part of its records, 0 to 1; None before the first progress."""
        total = self.read + self.unread
        return self.read / total if total else None
