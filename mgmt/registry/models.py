"""Models of the schema registry: subjects, schema texts and versions. No row is ever deleted."""

import json
from typing import Any

from django.conf import settings
from django.db import models

from dataplane.schemas.types import Compatibility, SchemaType
from mgmt.ids import id_maker
from mgmt.tenancy.models import Tenant

LEVELS = [(level.value, level.value) for level in Compatibility]
TYPES = [(kind.value, kind.value) for kind in SchemaType]


class RegistryDefault(models.Model):
    """Compatibility level of a tenant's subjects that have none of their own. Without a row it is BACKWARD."""

    tenant = models.OneToOneField(Tenant, models.CASCADE, primary_key=True, related_name="registry_default")
    compatibility = models.CharField(max_length=19, choices=LEVELS, default=Compatibility.BACKWARD.value)

    def __str__(self) -> str:
        return f"{self.tenant_id}: {self.compatibility}"


class Subject(models.Model):
    """Name under which the versions of one event type are registered, such as `orders-value` or `com.shop.Order`.

    A subject may exist without a version, because clients can set its compatibility level first.
    """

    id = models.CharField(primary_key=True, max_length=32, default=id_maker("subj"), editable=False)
    tenant = models.ForeignKey(Tenant, models.PROTECT, related_name="subjects")
    name = models.CharField(max_length=255)
    compatibility = models.CharField(
        max_length=19, choices=LEVELS, blank=True, help_text="Empty: the default of the tenant applies."
    )
    owner = models.CharField(max_length=80, blank=True, help_text="Person or team that answers questions about it.")
    created_at = models.DateTimeField(auto_now_add=True)
    deprecated_at = models.DateTimeField(null=True, help_text="Since then no new version is accepted.")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant", "name"], name="subject_name_once_per_tenant")]

    def __str__(self) -> str:
        return self.name

    @property
    def has_own_level(self) -> bool:
        """True if its compatibility level is not the tenant's default."""
        return self.compatibility != ""


class SchemaText(models.Model):
    """One schema of a tenant, stored once however many subjects have it.

    number: id on the wire (4 bytes in Confluent's format), unique within the tenant
    digest: SHA-256 of type, normal form and references, which identifies the text; unlike the fingerprint it covers
            defaults, documentation and logical types
    """

    tenant = models.ForeignKey(Tenant, models.PROTECT, related_name="schema_texts")
    number = models.PositiveIntegerField()
    type = models.CharField(max_length=8, choices=TYPES)
    name = models.TextField(blank=True, help_text="Full name of a named Avro type.")
    text = models.TextField(help_text="As it was first registered. Checked by dataplane.schemas before it is stored.")
    canonical = models.TextField(help_text="Canonical form, with references expanded.")
    document = models.TextField(help_text="The whole schema with references expanded, which ingest checks events with.")
    fingerprint = models.CharField(max_length=64, help_text="SHA-256 of the canonical form, hex.")
    digest = models.CharField(max_length=64)
    references = models.JSONField(default=list, help_text="[{name, subject, version}, ...]")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "number"], name="schema_id_once_per_tenant"),
            models.UniqueConstraint(fields=["tenant", "digest"], name="schema_stored_once_per_tenant"),
        ]
        indexes = [models.Index(fields=["tenant", "fingerprint"], name="schema_by_fingerprint")]

    def __str__(self) -> str:
        return f"schema {self.number}"

    @property
    def parsed(self) -> Any:
        """The text as parsed JSON."""
        return json.loads(self.text)


class SubjectVersion(models.Model):
    """One immutable version of a subject. Numbers grow by one, and a subject has each schema once."""

    subject = models.ForeignKey(Subject, models.PROTECT, related_name="versions")
    number = models.PositiveIntegerField()
    schema = models.ForeignKey(SchemaText, models.PROTECT, related_name="versions")
    author = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    deprecated_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["subject", "number"], name="version_number_once_per_subject"),
            models.UniqueConstraint(fields=["subject", "schema"], name="schema_once_per_subject"),
        ]

    def __str__(self) -> str:
        return f"version {self.number}"


class CatalogueLink(models.Model):
    """Link with which people without an account read a tenant's event catalogue, until it expires or is revoked.

    digest: SHA-256 of the link's token, hex; the token itself is shown once and not stored
    """

    id = models.CharField(primary_key=True, max_length=32, default=id_maker("link"), editable=False)
    tenant = models.ForeignKey(Tenant, models.CASCADE, related_name="catalogue_links")
    label = models.CharField(max_length=80, help_text="For whom it is.")
    digest = models.CharField(max_length=64, unique=True)
    author = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [models.Index(fields=["tenant", "created_at"], name="catalogue_links_of_tenant")]

    def __str__(self) -> str:
        return self.label
