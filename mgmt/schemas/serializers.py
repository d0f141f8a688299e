"""Bodies of the API's schemas of sources."""

from typing import Any

from rest_framework import serializers

from mgmt.web.parsers import StrictSerializer
from mgmt.web.serializers import PageOut


class SourceSchemaIn(StrictSerializer):
    """Next version of a source's schema."""

    schema = serializers.DictField(
        help_text="JSON Schema, draft 2020-12, at most 64 kB. `$ref` may only point to `#/$defs/` of the same document."
    )


class SourceSchemaOut(serializers.Serializer[Any]):
    """One immutable version of a source's schema."""

    number = serializers.IntegerField()
    schema = serializers.DictField(source="document")
    author = serializers.CharField(source="author.username", allow_null=True, default=None)
    created_at = serializers.DateTimeField()


class NewSourceSchemaOut(SourceSchemaOut):
    """A registered schema version, with a check of the source's newest event."""

    newest_event = serializers.CharField(
        allow_null=True,
        help_text="Result of a check of the source's newest event; null if that event cannot be read or checked now.",
    )


class SourceSchemaPageOut(PageOut):
    """A page of versions, newest first."""

    results = SourceSchemaOut(many=True)
