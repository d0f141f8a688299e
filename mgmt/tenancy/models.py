"""Models of users, tenants, roles and rate-limit counters."""

from typing import NamedTuple

from django.contrib.auth.models import AbstractUser
from django.db import models

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


class Tenant(models.Model):
    """A customer. Every row that a customer owns refers to one tenant."""

    id = models.CharField(primary_key=True, max_length=32, default=id_maker("ten"), editable=False)
    name = models.CharField(max_length=80)
    created_at = models.DateTimeField(auto_now_add=True)
    mask_salt = models.TextField(blank=True, editable=False, help_text="Fernet token of the salt of hashing masks.")
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
