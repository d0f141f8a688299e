"""Bodies of the API's look-up tables."""

from typing import Any

from rest_framework import serializers

from mgmt.pipes.serializers import NAME
from mgmt.web.parsers import StrictSerializer
from mgmt.web.serializers import PageOut


class LookupTableIn(StrictSerializer):
    """Look-up table to create."""

    name = serializers.RegexField(NAME)
    tenant = serializers.RegexField(
        r"^[a-z0-9_]{1,32}$", required=False, help_text="Required only for members of several tenants."
    )


class LookupTableOut(serializers.Serializer[Any]):
    """A look-up table."""

    id = serializers.CharField()
    name = serializers.CharField(help_text="Name by which `enrich` steps refer to the table.")
    tenant = serializers.CharField(source="tenant_id")
    row_count = serializers.IntegerField()
    state = serializers.ChoiceField(
        ["live", "publishing"],
        source="progress",
        help_text="`publishing` until the newest rows have been sent to all hosts.",
    )
    created_at = serializers.DateTimeField()
    changed_at = serializers.DateTimeField()


class LookupTablePageOut(PageOut):
    """A page of look-up tables, newest first."""

    results = LookupTableOut(many=True)


class UploadOut(serializers.Serializer[Any]):
    """Result of an upload. `rows`: number of rows in the file."""

    rows = serializers.IntegerField()
    table = LookupTableOut()
