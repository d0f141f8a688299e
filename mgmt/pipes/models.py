"""Models of a tenant's intent: pipes, their immutable revisions, sources with keys, destinations.

`version` of a row that becomes a control record grows with each change; the data plane keeps the highest version.
"""

import json
from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

from dataplane.spec import destination_of, endpoint_of
from dataplane.spec.keys import URL_PREFIX
from mgmt.cells.models.cells import Cell
from mgmt.ids import id_maker
from mgmt.tenancy.models import Tenant


class Pipe(models.Model):
    """A customer's pipe: sources, stages and destinations under one name."""

    class State(models.TextChoices):
        ACTIVE = "active"
        PAUSED = "paused"  # ingest accepts events; their messages are held
        CLOSED = "closed"  # ingest answers 409; ACKed events are still delivered

    id = models.CharField(primary_key=True, max_length=32, default=id_maker("pipe"), editable=False)
    tenant = models.ForeignKey(Tenant, models.PROTECT, related_name="pipes")
    name = models.CharField(max_length=80)
    state = models.CharField(max_length=6, choices=State, default=State.ACTIVE)
    cell = models.ForeignKey(
        Cell, models.PROTECT, null=True, blank=True, related_name="pipes", help_text="Cell on which it was placed."
    )
    version = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField(auto_now_add=True)
    state_since = models.DateTimeField(default=timezone.now)
    state_cause = models.CharField(
        max_length=40, blank=True, help_text="Cause for which Penstock paused it; empty if a person did."
    )
    state_reason = models.CharField(max_length=200, blank=True, help_text="What led to the state, in words.")
    sample = models.CharField(
        max_length=4_000,
        blank=True,
        default="",
        db_default="",
        help_text="Sample event of its author, as JSON, for code that sends a first event; empty for a general one.",
    )
    loss_threshold_percent = models.FloatField(
        default=0, db_default=0, help_text="Loss of a minute above which its tenant is alerted; 0: any lost message."
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "name"], name="pipe_name_once_per_tenant"),
        ]

    def __str__(self) -> str:
        return self.name


class PipeRevision(models.Model):
    """One immutable version of a tenant's pipe intent.

    A change to a pipe is a new row, never an update of `spec`: the data plane names the revision it runs, so an old
    row must keep its meaning. Only `state` changes, and only requested -> ramping -> live -> retired;
    `failed` may follow the first three.
    """

    class State(models.TextChoices):
        REQUESTED = "requested"
        RAMPING = "ramping"
        LIVE = "live"
        RETIRED = "retired"
        FAILED = "failed"

    IN_USE = (State.REQUESTED, State.RAMPING, State.LIVE)  # messages of these may still arrive

    pipe = models.ForeignKey(Pipe, models.PROTECT, related_name="revisions")
    number = models.PositiveIntegerField()
    spec = models.JSONField(help_text="Checked by dataplane.spec before it is stored.")
    state = models.CharField(max_length=9, choices=State, default=State.REQUESTED)
    state_reason = models.CharField(max_length=300, blank=True, help_text="Why it waits or failed, in words.")
    author = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    at_once = models.BooleanField(
        default=False,
        db_default=False,
        help_text="True if it takes all keys at once, as a fix of a failing revision does.",
    )
    has_penstock_source = models.BooleanField(
        default=False, db_default=False, help_text="True if a source of the spec receives operational events."
    )
    published_offset = models.BigIntegerField(null=True, help_text="Control topic offset just after its records.")
    live_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["pipe", "-number"]
        constraints = [
            models.UniqueConstraint(fields=["pipe", "number"], name="revision_number_once_per_pipe"),
            models.UniqueConstraint(fields=["pipe"], condition=Q(state="live"), name="one_live_revision_per_pipe"),
        ]
        indexes = [
            models.Index(fields=["pipe"], condition=Q(has_penstock_source=True), name="revisions_receiving_events")
        ]

    def __str__(self) -> str:
        return f"{self.pipe.name}@{self.number}"


class Source(models.Model):
    """Source of a pipe; its settings are in the revision's spec under the same name."""

    pipe = models.ForeignKey(Pipe, models.PROTECT, related_name="sources")
    name = models.CharField(max_length=40)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["pipe", "name"], name="source_name_once_per_pipe")]

    def __str__(self) -> str:
        return self.name


class SourceSchema(models.Model):
    """One immutable version of a source's schema: a JSON Schema, as text with the members in their author's order.

    Numbers grow by one for each source, and each version accepts all events that the version before accepted.
    """

    source = models.ForeignKey(Source, models.PROTECT, related_name="schemas")
    number = models.PositiveIntegerField()
    text = models.TextField(help_text="Checked by dataplane.spec.schema before it is stored.")
    author = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["source", "-number"]
        constraints = [models.UniqueConstraint(fields=["source", "number"], name="schema_number_once_per_source")]

    def __str__(self) -> str:
        return f"schema {self.number}"

    @property
    def document(self) -> Any:
        """The schema as parsed JSON."""
        return json.loads(self.text)


class ApiKey(models.Model):
    """API key that may post to one source.

    Only its SHA-256 is kept: keys carry 160 random bits, so a slow hash adds nothing.
    """

    id = models.CharField(primary_key=True, max_length=32, default=id_maker("key"), editable=False)
    source = models.ForeignKey(Source, models.PROTECT, related_name="keys")
    label = models.CharField(max_length=80, blank=True)
    prefix = models.CharField(
        max_length=16, help_text="The first characters, shown so that people can distinguish keys."
    )
    digest = models.CharField(max_length=64, unique=True, help_text="SHA-256 of the whole key, hex.")
    version = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True, help_text="Ingest refuses it from then on; null: never.")
    revoked_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"{self.prefix}..."

    @property
    def use(self) -> str:
        """`url` for the secret part of a webhook URL, `key` for an API key."""
        return "url" if self.prefix.startswith(URL_PREFIX) else "key"


class Destination(models.Model):
    """Destination of a pipe: its current address, secrets and state.

    `config` is the destination's part of the pipe's live spec, adopted when a revision becomes live, so that retries
    of older messages use the corrected address. Secrets and credentials are sealed tokens (dataplane.tables.sealed),
    the newest first. A removed destination that a later revision names again is active, whatever its state was before.
    """

    class State(models.TextChoices):
        ACTIVE = "active"
        PAUSED = "paused"  # by a person; messages are held
        SUSPENDED = "suspended"  # by Penstock, for `state_cause`; messages are held
        REMOVED = "removed"

    pipe = models.ForeignKey(Pipe, models.PROTECT, related_name="destinations")
    name = models.CharField(max_length=40)
    state = models.CharField(max_length=9, choices=State, default=State.ACTIVE)
    state_cause = models.CharField(
        max_length=40, blank=True, help_text="Cause for which it is suspended, as of a dead letter."
    )
    state_reason = models.CharField(
        max_length=200, blank=True, help_text="The response that led to the state, in words."
    )
    state_since = models.DateTimeField(default=timezone.now)
    state_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, null=True, blank=True, related_name="+")
    probe = models.CharField(
        max_length=64, blank=True, help_text="Id of the one message that is sent although the destination is held."
    )
    config = models.JSONField()
    secrets = models.JSONField(default=list)
    credentials = models.JSONField(
        default=list,
        help_text="[[endpoint, sealed secret], ...]: each valid only for its endpoint.",
    )
    version = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["pipe", "name"], name="destination_name_once_per_pipe")]

    def __str__(self) -> str:
        return self.name

    @property
    def credential(self) -> str:
        """The sealed secret for the current endpoint; "" if none was entered for it."""
        return self.credential_for(self.config)

    def credential_for(self, config: Mapping[str, Any]) -> str:
        """Return the sealed secret for the endpoint of `config`; "" if none was entered for that endpoint."""
        endpoint = endpoint_of(destination_of(config))
        return next((token for known, token in self.credentials if known == endpoint), "")
