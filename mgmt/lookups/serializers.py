"""Bodies of the API's look-up tables."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from mgmt.models import LookupTable
from mgmt.pipes.serializers import NAME
from mgmt.web.parsers import StrictSerializer
from mgmt.web.serializers import PageOut


class LookupTableIn(StrictSerializer):
    """Look-up table to create."""

    name = serializers.RegexField(NAME)
    tenant = serializers.RegexField(
        r"^[a-z0-9_]{1,32}$", required=False, help_text="Required only for members of several tenants."
    )


class TableFeedOut(serializers.Serializer[Any]):
    """A destination that writes the table."""

    pipe = serializers.CharField(source="pipe_id")
    pipe_name = serializers.CharField()
    destination = serializers.CharField()


class LookupTableOut(serializers.Serializer[Any]):
    """A look-up table."""

    # The context needs `feeds`, as mgmt.lookups.queries.feeds.feeds_of returns it.

    id = serializers.CharField()
    name = serializers.CharField(help_text="Name by which `enrich` steps refer to the table.")
    tenant = serializers.CharField(source="tenant_id")
    row_count = serializers.IntegerField(
        help_text="Rows stored by upload, API or console. The status of the table also counts those that pipes wrote."
    )
    fed_by = serializers.SerializerMethodField(help_text="Destinations that write the table. Empty: none does.")
    state = serializers.ChoiceField(
        ["live", "publishing"],
        source="progress",
        help_text="`publishing` until the newest rows have been sent to all hosts.",
    )
    created_at = serializers.DateTimeField()
    changed_at = serializers.DateTimeField()

    @extend_schema_field(TableFeedOut(many=True))  # type: ignore[untyped-decorator]  # drf-spectacular's is not typed
    def get_fed_by(self, table: LookupTable) -> Any:
        """Return the table's feeds."""
        return TableFeedOut(self.context["feeds"].get(table.id, []), many=True).data


class LookupTablePageOut(PageOut):
    """A page of look-up tables, newest first."""

    results = LookupTableOut(many=True)


class LookupRowOut(serializers.Serializer[Any]):
    """A row with its key, its version and the time of its last change."""

    key = serializers.CharField()
    row = serializers.JSONField(help_text="The row, an object.")
    version = serializers.CharField(help_text="Grows with each change of the row. Text, since it may exceed 2^53.")
    changed_at = serializers.DateTimeField(
        allow_null=True,
        help_text="When the row was written; null for a row that was entered before a pipe wrote the table.",
    )


class LookupRowPageOut(serializers.Serializer[Any]):
    """Rows in key order."""

    rows = LookupRowOut(many=True)
    after = serializers.CharField(
        allow_blank=True, help_text="Send it as `after` to get the next rows. Empty: there are none."
    )


class LookupTableStatusOut(serializers.Serializer[Any]):
    """Rows, last change and lag of a table."""

    stream_fed = serializers.BooleanField(
        help_text="True if a pipe writes the table or has written it: its rows are read from a host of the data plane."
    )
    rows = serializers.IntegerField(allow_null=True, help_text="Number of rows; null while they are being counted.")
    changed_at = serializers.DateTimeField(
        allow_null=True,
        help_text="Last change: for a stream-fed table, when the newest event that changed a row was received.",
    )
    lag_s = serializers.FloatField(
        allow_null=True,
        help_text="Seconds since the host last had every change of all tables; null for other tables.",
    )


class TableAccessOut(serializers.Serializer[Any]):
    """Direct access to the rows of a table."""

    url = serializers.CharField(
        help_text="Append `/rows/<key>` or `/rows?prefix=`; without it: rows, last change, lag."
    )
    token = serializers.CharField(help_text="Send it as `Authorization: Bearer <token>`. It reads this table only.")
    expires_at = serializers.DateTimeField()


class UploadOut(serializers.Serializer[Any]):
    """Result of an upload. `rows`: number of rows in the file."""

    rows = serializers.IntegerField()
    table = LookupTableOut()
