"""Models of API tokens, and of service accounts, which sign in with nothing else."""

from typing import Final

from django.conf import settings
from django.db import models

from mgmt.ids import id_maker
from mgmt.pipes.models import Pipe
from mgmt.tenancy.models import Membership, Tenant


class ServiceAccount(models.Model):
    """User of a program: a member of one tenant without password, mails or sign-in.

    A removed one keeps its row and its user, which authored revisions and other rows.
    """

    id = models.CharField(primary_key=True, max_length=32, default=id_maker("svc"), editable=False)
    tenant = models.ForeignKey(Tenant, models.CASCADE, related_name="service_accounts")
    user = models.OneToOneField(settings.AUTH_USER_MODEL, models.CASCADE, related_name="service_account")
    name = models.CharField(max_length=40)
    created_at = models.DateTimeField()
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    removed_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "name"],
                condition=models.Q(removed_at=None),
                name="service_account_name_once_per_tenant",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class ApiToken(models.Model):
    """Token with which a program calls the API as one user, in one tenant, with at most the role of its scope.

    Only its SHA-256 is kept: tokens carry 160 random bits, so a slow hash adds nothing.
    """

    class Scope(models.TextChoices):
        READ = "read"
        OPERATE = "operate"  # also pauses, redrives, acknowledges
        PUBLISH = "publish"  # also creates pipes and keys, publishes revisions
        ADMIN = "admin"  # also manages members and tokens, closes pipes

    id = models.CharField(primary_key=True, max_length=32, default=id_maker("tok"), editable=False)
    tenant = models.ForeignKey(Tenant, models.CASCADE, related_name="api_tokens")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="api_tokens")
    name = models.CharField(max_length=80)
    scope = models.CharField(max_length=7, choices=Scope)
    pipe = models.ForeignKey(
        Pipe, models.CASCADE, null=True, related_name="+", help_text="The only pipe it reaches; null: all."
    )
    prefix = models.CharField(
        max_length=16, help_text="The first characters, shown so that people can distinguish tokens."
    )
    digest = models.CharField(max_length=64, unique=True, help_text="SHA-256 of the whole token, hex.")
    created_at = models.DateTimeField()
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    # No foreign key: a token whose connection is gone keeps naming it, and stays refused.
    sso_connection_id = models.CharField(
        max_length=32,
        blank=True,
        default="",
        db_default="",
        editable=False,
        help_text="Single sign-on by which the session began that created it; empty: own means.",
    )
    expires_at = models.DateTimeField(null=True, help_text="Null: never.")
    last_used_at = models.DateTimeField(null=True, help_text="Written at most once a minute.")
    last_used_from = models.CharField(max_length=45, blank=True, help_text="Address of that request.")
    revoked_at = models.DateTimeField(null=True)
    revoked_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")

    class Meta:
        indexes = [models.Index(fields=["tenant", "created_at"], name="api_tokens_of_a_tenant")]

    def __str__(self) -> str:
        return f"{self.prefix}..."


ROLE_OF_SCOPE: Final = {
    ApiToken.Scope.READ: Membership.Role.VIEWER,
    ApiToken.Scope.OPERATE: Membership.Role.OPERATOR,
    ApiToken.Scope.PUBLISH: Membership.Role.EDITOR,
    ApiToken.Scope.ADMIN: Membership.Role.OWNER,
}
SCOPE_OF_ROLE: Final = {role: scope for scope, role in ROLE_OF_SCOPE.items()}
