"""Models of replays, and of the backfills that start some of them."""

from datetime import datetime, timedelta
from typing import Final

from django.db import models
from django.db.models import Q

from dataplane.ledger.bins import Bin
from mgmt.cells.models.runs import CellRun
from mgmt.ids import id_maker
from mgmt.pipes.models import Pipe
from mgmt.tenancy.models import Tenant

UNDONE: Final = (Bin.DEAD, Bin.CANCELLED, Bin.LOST)  # outcomes of units that were to be delivered and were not
REPLAYS_KEPT_D: Final = 90  # after their end


class Replay(CellRun):
    """Repeated delivery of the events of a range of ingest times (docs/decisions/0492).

    running <-> paused; both -> done, failed, aborting; aborting -> aborted. The driver of the cell reports its
    progress; a replay that waits for the driver is running without `started_at`.

    reached:  "<topic>/<partition>" -> all events below this offset are done and reported to the ledger
    ends:     "<topic>/<partition>" -> the offset at which the replay ends there
    units:    by destination, the units sent (in a rehearsal: to be sent)
    result:   the final account, {"asked": events, "bins": {destination: {bin: count}}, "nodes": [{node, arrived,
              lost}]}; None until nothing of it is queued or waits for a retry. The destination "" has the units that
              ended before one was chosen
    """

    class State(models.TextChoices):
        RUNNING = "running"
        PAUSED = "paused"
        ABORTING = "aborting"
        ABORTED = "aborted"
        DONE = "done"
        FAILED = "failed"

    UNDER_WAY = (State.RUNNING, State.PAUSED, State.ABORTING)

    id = models.CharField(primary_key=True, max_length=32, default=id_maker("replay"), editable=False)
    tenant = models.ForeignKey(Tenant, models.PROTECT, related_name="replays")
    pipe = models.ForeignKey(Pipe, models.PROTECT, related_name="replays")
    repeats = models.ForeignKey(
        "self", models.SET_NULL, null=True, related_name="+", help_text="Replay whose failed events it repeats."
    )
    bucket = models.IntegerField(help_text="Minute of its creation, in which the ledger counts all of its units.")
    revision = models.PositiveIntegerField(help_text="Number of the revision whose plan runs.")
    destinations = models.JSONField(help_text="Names of destinations of the revision.")
    since = models.DateTimeField(help_text="Ingest time of the first events.")
    until = models.DateTimeField(help_text="Ingest time before which the last events arrived.")
    where = models.CharField(max_length=2_048, blank=True, help_text="Expression that selects events; empty for all.")
    keys = models.JSONField(default=list, help_text="Keys of the selected events; empty for all.")
    ids = models.JSONField(default=list, help_text="Message ids of the selected events; empty for all.")
    revisions = models.JSONField(
        default=list,
        db_default=[],
        help_text="Numbers of the revisions with which ingest stamped the selected events; empty for all.",
    )
    rate_per_s = models.FloatField(help_text="Units per second, at most, over all destinations.")
    rehearsal = models.BooleanField(default=False, help_text="True if it counts only, and sends nothing.")
    state = models.CharField(max_length=8, choices=State, default=State.RUNNING)
    paused_s = models.FloatField(default=0, help_text="Duration of its earlier pauses after the start, in seconds.")
    asked = models.BigIntegerField(default=0, help_text="Events selected.")
    units = models.JSONField(default=dict)
    filtered = models.BigIntegerField(default=0, help_text="Units that the steps or routes ended on purpose.")
    failed = models.BigIntegerField(default=0, help_text="Units that ended in a step with an error.")
    size_bytes = models.BigIntegerField(default=0, help_text="Size of the bodies sent, or to be sent.")
    result = models.JSONField(null=True)
    result_at = models.DateTimeField(null=True, help_text="Time at which the result was stored.")
    checked_at = models.DateTimeField(null=True, help_text="Last time at which its account was not final.")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant"],
                condition=Q(state__in=["running", "paused", "aborting"]),
                name="one_replay_under_way_per_tenant",
            ),
        ]
        indexes = [
            models.Index(fields=["pipe", "-id"], name="replays_of_a_pipe"),
            models.Index(fields=["bucket"], condition=Q(result_at=None), name="replays_without_result"),
        ]

    def __str__(self) -> str:
        return f"replay of revision {self.revision}: {self.state}"

    @property
    def undone_bins(self) -> tuple[Bin, ...]:
        """Those of UNDONE that are final: a unit that counts as lost may still arrive before the result is."""
        return UNDONE if self.result_at else UNDONE[:2]

    @property
    def share(self) -> float | None:
        """Read part of its records, 0 to 1; None before the first progress."""
        return 1.0 if self.state == self.State.DONE else self.read_part

    @property
    def expected_end(self) -> datetime | None:
        """Time at which it will end at its speed so far; None if that is not known, or while it is paused."""
        if self.state != self.State.RUNNING or not self.read or self.started_at is None or self.progress_at is None:
            return None
        took_s = (self.progress_at - self.started_at).total_seconds() - self.paused_s
        return self.progress_at + timedelta(seconds=max(0.0, took_s) * self.unread / self.read)


class Backfill(models.Model):
    """Earlier events for a new destination, which one replay delivers (docs/decisions/0498).

    It waits (`reason` says for what) until it has a replay, or has ended without one, for the reason. A cancelled one
    has ended without a reason.

    revision:  number of the revision that brought the destination
    beginning: `from` of the destination in its spec
    """

    id = models.CharField(primary_key=True, max_length=32, default=id_maker("backfill"), editable=False)
    pipe = models.ForeignKey(Pipe, models.CASCADE, related_name="backfills")
    destination = models.CharField(max_length=40)
    revision = models.PositiveIntegerField()
    beginning = models.CharField(max_length=40)
    created_at = models.DateTimeField(help_text="Time at which the revision became live.")
    reason = models.CharField(max_length=300, blank=True)
    ended_at = models.DateTimeField(null=True, help_text="End without a replay.")
    replay = models.OneToOneField(Replay, models.CASCADE, null=True, related_name="backfill")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["pipe", "destination", "revision"], name="one_backfill_per_new_destination_of_a_revision"
            ),
            models.CheckConstraint(
                condition=Q(replay=None) | Q(ended_at=None), name="backfill_with_a_replay_ends_with_it"
            ),
        ]
        indexes = [
            models.Index(fields=["created_at"], condition=Q(replay=None, ended_at=None), name="waiting_backfills"),
        ]

    def __str__(self) -> str:
        return f"backfill of {self.destination}"

    @property
    def is_waiting(self) -> bool:
        """True until it has a replay, or has ended without one."""
        return self.replay_id is None and self.ended_at is None

    @property
    def is_cancelled(self) -> bool:
        """True if a user has cancelled it before it had a replay."""
        return self.ended_at is not None and not self.reason

    @property
    def state(self) -> str:
        """`waiting`, `cancelled`, `not started`, or the state of its replay."""
        if self.replay:
            return self.replay.state
        return "waiting" if self.is_waiting else "cancelled" if self.is_cancelled else "not started"
