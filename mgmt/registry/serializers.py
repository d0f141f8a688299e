"""Bodies of the API's schema registry."""

from typing import Any

from rest_framework import serializers

from dataplane.schemas.types import SchemaType
from mgmt.registry.catalogue_links import MAX_DAYS
from mgmt.registry.drafts import SchemaDraft, SchemaReference
from mgmt.registry.models import LEVELS
from mgmt.web.parsers import StrictSerializer
from mgmt.web.serializers import PageOut


class SchemaReferenceIn(StrictSerializer):
    """Reference to a version of another subject."""

    name = serializers.CharField(
        max_length=255, help_text="Full name of the Avro type, or the text of the `$ref` in a JSON Schema."
    )
    subject = serializers.CharField(max_length=255)
    version = serializers.IntegerField(min_value=-1, max_value=2**31 - 1, help_text="-1 is the latest version.")


class SchemaDraftIn(StrictSerializer):
    """Schema to check or to register."""

    tenant = serializers.CharField(required=False, help_text="Needed only if you have several tenants.")
    subject = serializers.CharField(max_length=255, trim_whitespace=False)
    type = serializers.ChoiceField([kind.value for kind in SchemaType], default=SchemaType.AVRO.value)
    schema = serializers.JSONField(help_text="The schema as JSON, or as a string that contains JSON.")
    references = SchemaReferenceIn(many=True, required=False)
    owner = serializers.CharField(
        required=False, max_length=80, help_text="Owner of a new subject. Default: your user name."
    )


class SubjectChangeIn(StrictSerializer):
    """Changes of a subject. Omitted fields are unchanged."""

    compatibility = serializers.ChoiceField(
        LEVELS, required=False, allow_null=True, help_text="Null: the tenant's default applies."
    )
    owner = serializers.CharField(required=False, allow_blank=True, max_length=80)
    deprecated = serializers.BooleanField(required=False, help_text="A deprecated subject accepts no new version.")


class VersionChangeIn(StrictSerializer):
    """Changes of a version: only its deprecation. The schema is immutable."""

    deprecated = serializers.BooleanField()


class SubjectOut(serializers.Serializer[Any]):
    """Subject of the schema registry."""

    id = serializers.CharField()
    tenant = serializers.CharField(source="tenant_id")
    name = serializers.CharField()
    type = serializers.CharField(source="schema_type", allow_null=True, help_text="Null before the first version.")
    versions = serializers.IntegerField(source="version_count")
    newest_version = serializers.IntegerField(source="newest_number", allow_null=True)
    compatibility = serializers.ChoiceField(LEVELS, source="level", help_text="Level that applies.")
    own_compatibility = serializers.BooleanField(
        source="has_own_level", help_text="False if the level is the tenant's default."
    )
    owner = serializers.CharField()
    created_at = serializers.DateTimeField()
    deprecated_at = serializers.DateTimeField(allow_null=True)


class SubjectPageOut(PageOut):
    """A page of subjects, newest first."""

    results = SubjectOut(many=True)


class SubjectVersionOut(serializers.Serializer[Any]):
    """One immutable version of a subject."""

    subject = serializers.CharField(source="subject.name")
    number = serializers.IntegerField()
    schema_id = serializers.IntegerField(source="schema.number", help_text="Id on the wire, unique in the tenant.")
    fingerprint = serializers.CharField(source="schema.fingerprint", help_text="SHA-256 of the canonical form, hex.")
    type = serializers.CharField(source="schema.type")
    schema = serializers.CharField(source="schema.text", help_text="The schema as it was registered.")
    references = serializers.JSONField(source="schema.references")
    author = serializers.CharField(source="author.username", allow_null=True, default=None)
    created_at = serializers.DateTimeField()
    deprecated_at = serializers.DateTimeField(allow_null=True)


class SubjectVersionPageOut(PageOut):
    """A page of versions, newest first."""

    results = SubjectVersionOut(many=True)


class IncompatibilityOut(serializers.Serializer[Any]):
    """One place at which a reader could not read what a writer wrote."""

    version = serializers.IntegerField(help_text="Earlier version of the subject.")
    pointer = serializers.CharField(source="path", help_text="JSON pointer into the reader's schema.")
    reader = serializers.CharField()
    writer = serializers.CharField()
    reason = serializers.CharField(help_text="Stable code of the reason.")
    message = serializers.CharField()


class DraftCheckOut(serializers.Serializer[Any]):
    """Result of checking a schema for a subject. Nothing is stored."""

    compatible = serializers.BooleanField()
    level = serializers.ChoiceField(LEVELS)
    fingerprint = serializers.CharField()
    name = serializers.CharField(help_text="Full name of a named Avro type, else empty.")
    incompatibilities = IncompatibilityOut(many=True)
    suggested_subject = serializers.CharField(
        allow_null=True, help_text="Subject under which an incompatible schema can be registered."
    )


class SchemaTextOut(serializers.Serializer[Any]):
    """A schema, with each version that has it."""

    tenant = serializers.CharField(source="tenant_id")
    schema_id = serializers.IntegerField(source="number")
    fingerprint = serializers.CharField()
    type = serializers.CharField()
    name = serializers.CharField()
    schema = serializers.CharField(source="text")
    references = serializers.JSONField()
    versions = serializers.SerializerMethodField()

    def get_versions(self, row: Any) -> list[dict[str, Any]]:
        """Return subject and number of each version."""
        return [{"subject": one.subject.name, "number": one.number} for one in row.versions.all()]


class SchemaTextPageOut(PageOut):
    """A page of schemas, newest first."""

    results = SchemaTextOut(many=True)


class RegistryConfigOut(serializers.Serializer[Any]):
    """Default compatibility level of a tenant."""

    compatibility = serializers.ChoiceField(LEVELS)


class RegistryConfigIn(StrictSerializer):
    """Default compatibility level to set."""

    compatibility = serializers.ChoiceField(LEVELS)


def draft_of(body: dict[str, Any], text: str) -> SchemaDraft:
    """Return the draft of a checked body whose schema is this text."""
    references = tuple(SchemaReference(**one) for one in body.get("references", ()))
    return SchemaDraft(SchemaType(body["type"]), text, references)


class CatalogueLinkIn(StrictSerializer):
    """Link to create."""

    label = serializers.CharField(  # type: ignore[assignment]  # a field, not DRF's attribute
        max_length=80, help_text="For whom it is."
    )
    days = serializers.IntegerField(min_value=1, max_value=MAX_DAYS, default=30, help_text="Until it expires.")


class CatalogueLinkOut(serializers.Serializer[Any]):
    """Open link to the event catalogue. Its address is not stored."""

    id = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]  # a field, not DRF's attribute
    author = serializers.CharField(source="author.username", allow_null=True, default=None)
    created_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField()


class NewCatalogueLinkOut(CatalogueLinkOut):
    """New link, with its address."""

    url = serializers.CharField(help_text="Anyone with it can read the catalogue. It cannot be read again.")
