"""Bodies of the API's look-up tables."""

from typing import Any

from rest_framework import serializers

from mgmt.api.parsing import StrictSerializer
from mgmt.api.shapes import NAME, PageOut


class LookupTableIn(StrictSerializer):
    """A look-up table to be made."""

    name = serializers.RegexField(NAME)
    tenant = serializers.RegexField(
        r"^[a-z0-9_]{1,32}$", required=False, help_text="Needed only by members of several tenants."
    )


class LookupTableOut(serializers.Serializer[Any]):
    """A look-up table."""

    id = serializers.CharField()
    name = serializers.CharField(help_text="What `enrich` steps call it.")
    tenant = serializers.CharField(source="tenant_id")
    row_count = serializers.IntegerField()
    state = serializers.ChoiceField(
        ["live", "publishing"],
        source="progress",
        help_text="`publishing` while hosts have not been sent the newest rows.",
    )
    created_at = serializers.DateTimeField()
    changed_at = serializers.DateTimeField()


class LookupTablePageOut(PageOut):
    """A page of look-up tables, newest first."""

    results = LookupTableOut(many=True)


class UploadOut(serializers.Serializer[Any]):
    """What an upload did. `rows`: how many the file held."""

    rows = serializers.IntegerField()
    table = LookupTableOut()
