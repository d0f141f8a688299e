"""Models of single sign-on: the connection of a tenant to its identity provider, and the tenant's e-mail domains.

An identity is a row of allauth's SocialAccount: `provider` is the id of the connection, `uid` the subject. Its e-mail
address identifies nobody.
"""

from django.db import models
from django.db.models import Q

from mgmt.ids import id_maker
from mgmt.tenancy.models import Membership, Tenant


class SsoConnection(models.Model):
    """Connection of a tenant to its identity provider.

    Another issuer, protocol or attribute as subject is another connection, with a new id: a subject of the one means
    nothing to the other.
    """

    class Protocol(models.TextChoices):
        OIDC = "oidc", "OpenID Connect"
        SAML = "saml", "SAML 2.0"

    class JoinPolicy(models.TextChoices):
        ANYONE = "anyone"  # whom the provider signs in becomes a member with the default role
        INVITED = "invited"  # needs an open invitation or an existing membership

    id = models.CharField(primary_key=True, max_length=32, default=id_maker("sso"), editable=False)
    tenant = models.OneToOneField(Tenant, models.CASCADE, related_name="sso_connection")
    protocol = models.CharField(
        max_length=4, choices=Protocol, default=Protocol.OIDC, db_default=Protocol.OIDC, help_text="Protocol."
    )
    issuer = models.CharField(max_length=1_000, help_text="Issuer URL; with SAML, the provider's entity ID.")
    client_id = models.CharField(max_length=191, blank=True)
    client_secret = models.TextField(editable=False, blank=True, help_text="Fernet token; with SAML, empty.")
    # -- SAML
    metadata_url = models.CharField(max_length=1_000, blank=True, default="", db_default="")
    metadata_read_at = models.DateTimeField(null=True, editable=False, help_text="Last attempt to read the URL.")
    metadata_valid_until = models.DateTimeField(null=True)
    sso_url = models.CharField(max_length=1_000, blank=True, default="", db_default="")
    certificates = models.JSONField(default=list, db_default=[], help_text="Of signatures: DER in base64.")
    subject_attribute = models.CharField(max_length=200, blank=True, default="", db_default="")
    email_attribute = models.CharField(max_length=200, blank=True, default="", db_default="")
    trusts_email = models.BooleanField(default=False, db_default=False)
    idp_initiated = models.BooleanField(default=False, db_default=False)
    # -- both
    enabled = models.BooleanField(default=False)
    join_policy = models.CharField(max_length=7, choices=JoinPolicy, default=JoinPolicy.ANYONE)
    default_role = models.CharField(max_length=8, choices=Membership.Role, default=Membership.Role.VIEWER)
    created_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=~Q(default_role=Membership.Role.OWNER), name="first_sign_in_makes_nobody_an_owner"
            ),
        ]

    def __str__(self) -> str:
        return self.issuer


class UsedAssertion(models.Model):
    """SAML assertion that was used. Kept until it is too old to be accepted, also if the connection is replaced."""

    tenant = models.ForeignKey(Tenant, models.CASCADE, related_name="+")
    digest = models.CharField(max_length=64, help_text="SHA-256 of issuer and ID of the assertion, hex.")
    expires_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "digest"], name="assertion_is_used_once_per_tenant"),
        ]

    def __str__(self) -> str:
        return self.digest


class SsoDomain(models.Model):
    """E-mail domain that a tenant's single sign-on accepts. Verified: a DNS record shows that it is the tenant's."""

    tenant = models.ForeignKey(Tenant, models.CASCADE, related_name="sso_domains")
    domain = models.CharField(max_length=253, help_text="In lower case.")
    token = models.CharField(max_length=64, help_text="Value that the DNS record needs.")
    verified_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "domain"], name="sso_domain_once_per_tenant"),
            models.UniqueConstraint(
                fields=["domain"], condition=Q(verified_at__isnull=False), name="one_tenant_per_verified_domain"
            ),
        ]

    def __str__(self) -> str:
        return self.domain
