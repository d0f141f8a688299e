"""Model of the audit log."""

from typing import Final

from django.conf import settings
from django.db import models
from django.utils import timezone

from mgmt.ids import id_maker
from mgmt.pipes.models import Pipe
from mgmt.tenancy.models import Tenant

NAME_CHARS: Final = 200


class AuditEntry(models.Model):
    """One change in a tenant, with its actor. Written in the transaction of the change (docs/decisions/0108).

    The database makes entries append-only: it refuses to change one, and deletes only those past the retention.
    Names are copies, so that an entry keeps its meaning after a rename or the end of an account.

    before, after: the fields that changed, of the fields that mgmt.audit.actions lists for the action
    """

    class ActorKind(models.TextChoices):
        USER = "user"
        TOKEN = "token"  # noqa: S105 an API token, on behalf of the user who created it
        STAFF = "staff"  # of the operator, not a member of the tenant
        SYSTEM = "system"  # Penstock itself

    id = models.CharField(primary_key=True, max_length=32, default=id_maker("aud"), editable=False)
    tenant = models.ForeignKey(Tenant, models.PROTECT, related_name="audit_entries")
    at = models.DateTimeField(default=timezone.now)
    actor_kind = models.CharField(max_length=8, choices=ActorKind)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    actor = models.CharField(max_length=150, help_text="User name; of a token, that of its user.")
    token_id = models.CharField(max_length=32, blank=True)
    token_name = models.CharField(max_length=NAME_CHARS, blank=True)
    address = models.CharField(max_length=45, blank=True, help_text="IP address of the client; empty outside requests.")
    request_id = models.CharField(max_length=64, blank=True)
    action = models.CharField(max_length=60)
    target_kind = models.CharField(max_length=30)
    target_id = models.CharField(max_length=NAME_CHARS)
    target_name = models.CharField(max_length=NAME_CHARS, blank=True)
    pipe = models.ForeignKey(Pipe, models.PROTECT, null=True, related_name="audit_entries")
    before = models.JSONField(default=dict)
    after = models.JSONField(default=dict)

    class Meta:
        indexes = [
            models.Index(fields=["tenant", "-at", "-id"], name="audit_entries_of_a_tenant"),
            models.Index(fields=["pipe", "-at", "-id"], name="audit_entries_of_a_pipe"),
            models.Index(fields=["tenant", "actor", "-at", "-id"], name="audit_entries_of_an_actor"),
            models.Index(fields=["tenant", "action", "-at", "-id"], name="audit_entries_of_an_action"),
            models.Index(fields=["at"], name="audit_entries_by_age"),
        ]

    def __str__(self) -> str:
        return f"{self.actor}: {self.action} {self.target_name or self.target_id}"
