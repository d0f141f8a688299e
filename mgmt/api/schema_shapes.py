"""Bodies of the API's schemas of sources."""

from typing import Any

from rest_framework import serializers

from mgmt.api.parsing import StrictSerializer
from mgmt.api.shapes import PageOut


class SourceSchemaIn(StrictSerializer):
    """The next version of a source's schema."""

    schema = serializers.DictField(
        help_text="JSON Schema, draft 2020-12, at most 64 kB. `$ref` leads to `#/$defs/` of the same document only."
    )


class SourceSchemaOut(serializers.Serializer[Any]):
    """One immutable version of a source's schema."""

    number = serializers.IntegerField()
    schema = serializers.DictField(source="document")
    author = serializers.CharField(source="author.username", allow_null=True, default=None)
    created_at = serializers.DateTimeField()


class NewSourceSchemaOut(SourceSchemaOut):
    """What was registered."""

    newest_event = serializers.CharField(
        allow_null=True, help_text="Whether the source's newest event fits, in words; null if it cannot be had now."
    )


class SourceSchemaPageOut(PageOut):
    """A page of versions, newest first."""

    results = SourceSchemaOut(many=True)
