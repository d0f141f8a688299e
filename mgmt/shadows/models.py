"""Model of shadow runs."""

from typing import Final

from django.db import models
from django.db.models import Q

from dataplane.tables.shadows import UnitKind
from mgmt.cells.models.runs import CellRun
from mgmt.ids import id_maker
from mgmt.pipes.models import Pipe
from mgmt.tenancy.models import Tenant

SHADOWS_KEPT_D: Final = 90  # after their end
EQUAL, DIFFERENT, ONLY_LIVE, ONLY_DRAFT, NOT_SENT = "equal", "different", "only_live", "only_draft", "not_sent"
# Results of a unit (dataplane.tables.shadows.UnitKind) by the names that the API and pages use.
KIND_NAMES: Final[dict[UnitKind, str]] = {
    "equal": EQUAL,
    "different": DIFFERENT,
    "only_live": ONLY_LIVE,
    "only_shadow": ONLY_DRAFT,
    "not_sent": NOT_SENT,
}
KINDS: Final = tuple(KIND_NAMES.values())


class Shadow(CellRun):
    """Run of a draft over real events of a pipe without sending, and its comparison (docs/decisions/0494).

    running -> stopping, done, failed; stopping -> stopped, done. The driver of the cell reports its progress; a run
    that waits for the driver is running without `started_at`.

    reached:  "<topic>/<partition>" -> all events below this offset are compared
    ends:     "<topic>/<partition>" -> the offset at which the run ends there; of one that follows live traffic, the
              offset up to which the live revision has processed
    units:    {destination: {name in KINDS: units}}
    fields:   {destination: {path: units in which the field differs}}
    rejected: {cause: units that only the draft rejects}
    samples:  newest units that are not equal: [{kind, destination, position, child, reason,
              fields: [{path, live, draft}]}]
    """

    class State(models.TextChoices):
        RUNNING = "running"
        STOPPING = "stopping"
        STOPPED = "stopped"
        DONE = "done"
        FAILED = "failed"

    UNDER_WAY = (State.RUNNING, State.STOPPING)

    id = models.CharField(primary_key=True, max_length=32, default=id_maker("shadow"), editable=False)
    tenant = models.ForeignKey(Tenant, models.PROTECT, related_name="shadows")
    pipe = models.ForeignKey(Pipe, models.PROTECT, related_name="shadows")
    spec = models.JSONField(help_text="The draft, checked as for publication.")
    revision = models.PositiveIntegerField(help_text="Number of the live revision at the start.")
    based_on = models.PositiveIntegerField(help_text="Number of the newest revision at the start.")
    promoted = models.PositiveIntegerField(null=True, help_text="Number of the revision that has its spec.")
    since = models.DateTimeField(help_text="Ingest time of the first events.")
    until = models.DateTimeField(null=True, help_text="End of the ingest times; null to follow live traffic.")
    most_events = models.PositiveIntegerField(help_text="Events after which it ends; 0 for no limit.")
    state = models.CharField(max_length=8, choices=State, default=State.RUNNING)
    why_stopped = models.CharField(max_length=100, blank=True, help_text="Why Penstock stopped it; else empty.")
    events = models.BigIntegerField(default=0, help_text="Events compared.")
    units = models.JSONField(default=dict)
    fields = models.JSONField(default=dict)
    rejected = models.JSONField(default=dict)
    samples = models.JSONField(default=list)
    cost_events = models.BigIntegerField(default=0, help_text="Events of which both plans were timed.")
    live_cpu_us = models.BigIntegerField(default=0, help_text="CPU time of the live revision for these events.")
    draft_cpu_us = models.BigIntegerField(default=0, help_text="CPU time of the draft for these events.")
    compared_until = models.DateTimeField(null=True, help_text="Ingest time up to which all events are compared.")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant"],
                condition=Q(state__in=["running", "stopping"]),
                name="one_shadow_under_way_per_tenant",
            ),
        ]
        indexes = [models.Index(fields=["pipe", "-id"], name="shadows_of_a_pipe")]

    def __str__(self) -> str:
        return f"shadow run against revision {self.revision}: {self.state}"

    @property
    def follows(self) -> bool:
        """True if it follows live traffic until it is stopped."""
        return self.until is None

    @property
    def is_complete(self) -> bool:
        """True if it has compared all of its events; one that follows live traffic is never complete."""
        if self.most_events and self.events >= self.most_events:
            return True
        return not self.follows and bool(self.ends) and not self.unread

    @property
    def share(self) -> float | None:
        """Compared part of its events, 0 to 1; None before the first progress, or if it follows live traffic."""
        if self.follows:
            return None
        if self.state == self.State.DONE or self.is_complete:
            return 1.0
        by_events = self.events / self.most_events if self.most_events and self.started_at else None
        return max((part for part in (self.read_part, by_events) if part is not None), default=None)
