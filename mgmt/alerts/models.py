"""Models of alerts (one open row per destination and kind of failure), channels, notifications and incidents."""

from typing import Any, Final

from django.conf import settings
from django.db import models
from django.db.models import Q

from dataplane.causes import Cause
from mgmt.ids import id_maker
from mgmt.pipes.models import Pipe
from mgmt.tenancy.models import Tenant

# Nouns for what the counts of these alerts count.
_COUNTED: Final[dict[str, str]] = {Cause.NUMERIC_DRIFT: "field", Cause.REJECTING: "event", Cause.SEQUENCE_GAP: "gap"}


class Alert(models.Model):
    """Alert about the failures of one destination with one cause, status and response; at most one of these is open.

    A destination with many kinds of failures has MOST_KINDS alerts, and one more for each cause with the rest (OTHER).

    opened -> acknowledged | snoozed -> resolved; an alert whose snooze ends is opened again. `sample` describes one
    failure: message_id, position, request (method, url, headers), status, answer, reason, curl; secrets are masked.
    """

    MOST_KINDS = 8
    OTHER = "other"

    class State(models.TextChoices):
        OPENED = "opened"
        ACKNOWLEDGED = "acknowledged"
        SNOOZED = "snoozed"
        RESOLVED = "resolved"

    class Probe(models.TextChoices):
        NONE = ""
        RUNNING = "running"
        ACCEPTED = "accepted"
        REFUSED = "refused"

    id = models.CharField(primary_key=True, max_length=32, default=id_maker("alert"), editable=False)
    pipe = models.ForeignKey(Pipe, models.PROTECT, related_name="alerts")
    destination = models.CharField(max_length=40, blank=True, help_text="Empty if the alert is about the whole pipe.")
    cause = models.CharField(max_length=40)
    status = models.PositiveIntegerField(
        default=0, db_default=0, help_text="HTTP status of the failures; 0 if there is none or they differ."
    )
    fingerprint = models.CharField(
        max_length=12,
        blank=True,
        default="",
        db_default="",
        help_text="Fingerprint of the response (mgmt.alerts.fingerprint); `other` for the alert with the rest.",
    )
    suspended = models.BooleanField(
        default=False, help_text="True if the destination was suspended for this cause; its messages are held."
    )
    state = models.CharField(max_length=12, choices=State, default=State.OPENED)
    opened_at = models.DateTimeField()
    last_at = models.DateTimeField(help_text="Time of the newest failure.")
    count = models.PositiveIntegerField(default=0)
    sample = models.JSONField(default=dict)
    details = models.JSONField(
        default=dict, db_default={}, help_text="Figures of the alert; the fields depend on its cause."
    )
    acknowledged_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, null=True, related_name="+")
    acknowledged_at = models.DateTimeField(null=True)
    snoozed_until = models.DateTimeField(null=True)
    resolved_at = models.DateTimeField(null=True)
    resolved_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, null=True, related_name="+")
    resolution = models.CharField(max_length=200, blank=True, help_text="Why it was resolved, in words.")
    probe = models.CharField(max_length=8, choices=Probe, blank=True)
    probe_unit = models.JSONField(
        default=dict, help_text="{message_id, position, bucket, child} of the probe's message."
    )
    probe_at = models.DateTimeField(null=True)
    probe_says = models.CharField(max_length=200, blank=True, help_text="Result of the probe, in words.")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["pipe", "destination", "cause", "status", "fingerprint"],
                condition=~Q(state="resolved"),
                name="one_open_alert_per_kind_of_failure",
            ),
        ]
        indexes = [models.Index(fields=["pipe", "-id"], name="alerts_of_a_pipe")]

    def __str__(self) -> str:
        return f"{self.cause} at {self.destination}: {self.state}"

    @property
    def figures(self) -> dict[str, Any]:
        """The details without what is only needed to compute them again."""
        return {name: value for name, value in self.details.items() if name not in ("shared", "buckets", "kinds")}

    @property
    def counted(self) -> str:
        """The noun for one of what `count` counts, such as a message, a drifting field or a failure."""
        if noun := _COUNTED.get(self.cause):
            return noun
        waits = self.cause in (Cause.LOST, Cause.FAILING, Cause.DELAYED, Cause.HOT_PARTITION)
        return "message" if waits else "failure"

    @property
    def cause_of_dead_letters(self) -> str:
        """Cause of the dead letters that the alert is about; "" if they may have any, such as after `dead-rate`."""
        return "" if self.counted != "failure" or self.cause == Cause.DEAD_RATE else self.cause


class AlertChannel(models.Model):
    """Notification channel of a tenant: an e-mail address, a webhook signed with its own secret, a chat or a pager.

    An e-mail address gets alerts only after its owner has confirmed it (docs/decisions/0312). The URL of a chat and the
    key of a pager are secrets (docs/decisions/0313).
    """

    class Kind(models.TextChoices):
        MAIL = "mail", "E-mail"
        WEBHOOK = "webhook", "Webhook"
        SLACK = "slack", "Slack"
        TEAMS = "teams", "Microsoft Teams"
        DISCORD = "discord", "Discord"
        PAGERDUTY = "pagerduty", "PagerDuty"
        PAGERDUTY_EU = "pagerduty-eu", "PagerDuty (EU)"

    id = models.CharField(primary_key=True, max_length=32, default=id_maker("chan"), editable=False)
    tenant = models.ForeignKey(Tenant, models.PROTECT, related_name="alert_channels")
    kind = models.CharField(max_length=12, choices=Kind)
    target = models.CharField(
        max_length=2_000, help_text="E-mail address or URL; of a chat or pager only its host and last characters."
    )
    secret = models.TextField(
        blank=True, help_text="Sealed signing secret of a webhook, URL of a chat, or integration key of a pager."
    )
    created_at = models.DateTimeField(auto_now_add=True)
    digest_at = models.DateTimeField(null=True, help_text="When its next digest is due; e-mail addresses only.")
    confirmed_at = models.DateTimeField(null=True, help_text="When its owner confirmed it; e-mail addresses only.")
    confirmation_asked_at = models.DateTimeField(null=True, help_text="When the newest confirmation was requested.")
    confirmation_due_at = models.DateTimeField(
        null=True, help_text="When to send a confirmation e-mail; empty if none is due."
    )
    test_requested_at = models.DateTimeField(null=True, help_text="When the newest test message was requested.")
    test_due_at = models.DateTimeField(null=True, help_text="When to send it; empty if it is answered, or none is due.")
    tested_at = models.DateTimeField(null=True, help_text="When it was accepted, or failed.")
    test_error = models.CharField(
        max_length=200, blank=True, db_default="", help_text="Why it failed; empty if it was accepted."
    )

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant", "target"], name="one_channel_per_target")]
        indexes = [
            models.Index(
                fields=["confirmation_due_at"],
                condition=Q(confirmation_due_at__isnull=False),
                name="confirmations_due",
            ),
            models.Index(fields=["test_due_at"], condition=Q(test_due_at__isnull=False), name="channel_tests_due"),
        ]

    # Condition of the channels that alerts are sent to.
    ACTIVE = ~Q(kind=Kind.MAIL) | Q(confirmed_at__isnull=False)

    def __str__(self) -> str:
        return self.target

    @property
    def is_active(self) -> bool:
        """True if alerts are sent to this channel: all but an e-mail address that is not confirmed."""
        return self.kind != self.Kind.MAIL or self.confirmed_at is not None


class Notification(models.Model):
    """Notification of one alert to one channel. The row is stored before the message is sent, so that none is lost."""

    class State(models.TextChoices):
        DUE = "due"
        SENT = "sent"
        FAILED = "failed"  # after the last try

    alert = models.ForeignKey(Alert, models.CASCADE, related_name="notices")
    channel = models.ForeignKey(AlertChannel, models.CASCADE, related_name="notices")
    what = models.CharField(max_length=8)  # opened | resolved
    state = models.CharField(max_length=6, choices=State, default=State.DUE)
    tries = models.PositiveIntegerField(default=0)
    next_at = models.DateTimeField()
    error = models.CharField(max_length=200, blank=True)
    sent_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "mgmt_notice"
        constraints = [
            models.UniqueConstraint(fields=["alert", "channel", "what"], name="told_once_per_channel"),
        ]
        indexes = [models.Index(fields=["next_at"], condition=Q(state="due"), name="notices_due")]

    def __str__(self) -> str:
        return f"{self.what} to {self.channel_id}: {self.state}"


class Incident(models.Model):
    """Incident: one cause that affects several tenants at once. Only staff see it; tenants have their own alerts."""

    cause = models.CharField(max_length=40)
    tenants = models.PositiveIntegerField()
    opened_at = models.DateTimeField()
    resolved_at = models.DateTimeField(null=True)
    told_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["cause"], condition=Q(resolved_at=None), name="one_open_incident_per_cause"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.cause} at {self.tenants} tenants"
