"""Models of users, tenants, roles and rate-limit counters."""

from datetime import datetime
from typing import NamedTuple

from django.contrib.auth.models import AbstractUser
from django.db import models
from django.db.models import Q

from mgmt.ids import id_maker


class Grant(NamedTuple):
    """Limits of a request that an API token authenticates: one tenant, one role, and one pipe if it is named.

    `role` is the lower of the role of the token's scope and its user's role in the tenant.
    """

    token_id: str
    token_name: str
    tenant_id: str
    role: str
    pipe_id: str | None = None


class User(AbstractUser):
    """User account. An own class from the first migration, because Django cannot swap the user model later."""

    is_service_account = models.BooleanField(default=False, db_default=False, help_text="True if it never signs in.")
    grant: Grant | None = None  # set on the user of one request by token authentication; never stored
    sso_connection_id: str = ""  # set on the user of a session, or token, by single sign-on; never stored


class Tenant(models.Model):
    """A customer. Every row that a customer owns refers to one tenant."""

    id = models.CharField(primary_key=True, max_length=32, default=id_maker("ten"), editable=False)
    name = models.CharField(max_length=80)
    created_at = models.DateTimeField(auto_now_add=True)
    mask_salt = models.TextField(blank=True, editable=False, help_text="Fernet token of the salt of hashing masks.")
    require_mfa = models.BooleanField(
        default=False, db_default=False, help_text="Members need a second factor to open the console."
    )
    require_sso = models.BooleanField(
        default=False, db_default=False, help_text="Members other than owners need to sign in by single sign-on."
    )
    portal_origins = models.JSONField(
        default=list,
        db_default=models.Value([], models.JSONField()),
        help_text="Sites that may embed the customer portal.",
    )
    members = models.ManyToManyField(User, through="Membership", related_name="tenants")

    def __str__(self) -> str:
        return self.name


class Membership(models.Model):
    """A user's role in a tenant. Each role includes the ones before it."""

    class Role(models.TextChoices):
        VIEWER = "viewer"  # reads
        OPERATOR = "operator"  # pauses, redrives, acknowledges
        EDITOR = "editor"  # creates pipes and keys, publishes revisions
        OWNER = "owner"  # manages members, closes pipes

    tenant = models.ForeignKey(Tenant, models.CASCADE, related_name="memberships")
    user = models.ForeignKey(User, models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=8, choices=Role)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "user"], name="one_membership_per_user_and_tenant"),
        ]

    def __str__(self) -> str:
        return f"{self.user} is {self.role} of {self.tenant}"


class Invitation(models.Model):
    """Invitation of a person to a tenant, by e-mail. The link's token is random; the row has its digest only."""

    id = models.CharField(primary_key=True, max_length=32, default=id_maker("inv"), editable=False)
    tenant = models.ForeignKey(Tenant, models.CASCADE, related_name="invitations")
    email = models.EmailField(help_text="In lower case.")
    role = models.CharField(max_length=8, choices=Membership.Role)
    digest = models.CharField(max_length=64, unique=True, help_text="SHA-256 of the token of the newest e-mail.")
    invited_by = models.ForeignKey(User, models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField()
    sent_at = models.DateTimeField(help_text="Time of the newest e-mail.")
    mail_error = models.CharField(max_length=300, blank=True, help_text="Reason why the newest e-mail was not sent.")
    expires_at = models.DateTimeField()
    accepted_at = models.DateTimeField(null=True)
    accepted_by = models.ForeignKey(User, models.SET_NULL, null=True, related_name="+")
    revoked_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "email"],
                condition=Q(accepted_at=None, revoked_at=None),
                name="one_open_invitation_per_tenant_and_address",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.email} as {self.role} of {self.tenant}"

    def is_valid_at(self, now: datetime) -> bool:
        """Return True if the invitation can be accepted."""
        return self.accepted_at is None and self.revoked_at is None and now < self.expires_at


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
