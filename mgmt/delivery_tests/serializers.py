"""Bodies of the API's test requests."""

from typing import Any

from rest_framework import serializers

from mgmt.models import DestinationTest
from mgmt.pipes.serializers import NAME, ROW_ID, SpecField
from mgmt.web.parsers import StrictSerializer


class DestinationTestIn(StrictSerializer):
    """Test request to a destination: a saved one (with `pipe`), or one of a spec that is not saved (with `spec`)."""

    destination = serializers.RegexField(NAME)
    pipe = serializers.RegexField(
        ROW_ID,
        required=False,
        help_text="Pipe of the destination. The request is signed with its secrets; the pipe's steps do not run.",
    )
    spec = SpecField(required=False)
    event = serializers.JSONField(
        required=False,
        help_text="Body of the request; with `spec`, the event on which the steps run. Default: an example event.",
    )
    source = serializers.RegexField(  # type: ignore[assignment]  # a field, not DRF's attribute
        NAME, required=False, help_text="Source at which the event enters the spec. Default: its first source."
    )
    tenant = serializers.RegexField(
        r"^[a-z0-9_]{1,32}$",
        required=False,
        help_text="Only with `spec`; required for members of several tenants.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Require either `pipe` or `spec`. Raises ValidationError."""
        if ("pipe" in attrs) == ("spec" in attrs):
            raise serializers.ValidationError({"spec": ["needs a spec or a pipe, not both"]})
        return attrs


class DestinationTestOut(serializers.ModelSerializer[DestinationTest]):
    """A test request, with its result once `state` is `done`."""

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
        extra_kwargs = {
            "status": {"help_text": "HTTP status of the response; 0 without a response."},
            "outcome": {"help_text": "Outcome that the response would have for a message."},
            "answer": {"help_text": "Beginning of the response body."},
        }
