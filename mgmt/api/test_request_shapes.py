"""Bodies of the API's test requests."""

from typing import Any

from rest_framework import serializers

from mgmt.api.parsing import StrictSerializer
from mgmt.api.shapes import NAME, ROW_ID, SpecField
from mgmt.models import DestinationTest


class DestinationTestIn(StrictSerializer):
    """A test request of a destination: of a saved one (`pipe`), or of one in a spec that is not saved (`spec`)."""

    destination = serializers.RegexField(NAME)
    pipe = serializers.RegexField(
        ROW_ID,
        required=False,
        help_text="Whose destination it is; signed with its own secrets. Its steps are left out.",
    )
    spec = SpecField(required=False)
    event = serializers.JSONField(
        required=False,
        help_text="The body; with a spec it goes through the steps. An example if left out.",
    )
    source = serializers.RegexField(  # type: ignore[assignment]  # a field, not DRF's attribute
        NAME, required=False, help_text="Where the event enters the spec; its first source if left out."
    )
    tenant = serializers.RegexField(
        r"^[a-z0-9_]{1,32}$", required=False, help_text="With a spec; needed only by members of several tenants."
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """One of the two."""
        if ("pipe" in attrs) == ("spec" in attrs):
            raise serializers.ValidationError({"spec": ["needs a spec or a pipe, and not both"]})
        return attrs


class DestinationTestOut(serializers.ModelSerializer[DestinationTest]):
    """A test request, and once its state is `done` what came of it."""

    class Meta:
        model = DestinationTest
        fields = [
            "id",
            "tenant",
            "pipe",
            "destination",
            "state",
            "created_at",
            "url",
            "headers",
            "body",
            "status",
            "outcome",
            "cause",
            "reason",
            "address",
            "dns_us",
            "connect_us",
            "tls_us",
            "first_byte_us",
            "total_us",
            "answer",
        ]
        read_only_fields = fields
