"""Bodies of the API's webhook settings."""

from typing import Any

from rest_framework import serializers

from dataplane.webhooks import PRESETS
from mgmt.models import SourceWebhook
from mgmt.web.parsers import StrictSerializer
from mgmt.webhook_sources.queries import place_words, preset_of

PRESET_HELP = "Kind of sender: how its requests are verified, which response they get, and where they name an event."
HEADERS_HELP = "Names of request headers that events keep as `meta.headers`, besides those of the preset; at most 20."


class WebhookIn(StrictSerializer):
    """Webhook settings of a source."""

    preset = serializers.ChoiceField(choices=list(PRESETS), help_text=PRESET_HELP)
    secret = serializers.CharField(
        max_length=256,
        required=False,
        default="",
        allow_blank=True,
        trim_whitespace=False,
        help_text="Signing secret that the sender shows. Empty keeps the stored ones, if the preset is the same. Until "
        "a source has one, ingest returns 503 to the sender.",
    )
    headers = serializers.ListField(
        child=serializers.CharField(max_length=64), max_length=20, required=False, default=list, help_text=HEADERS_HELP
    )
    keep_previous = serializers.BooleanField(
        required=False,
        default=True,
        help_text="The secret before the newest one stays valid too. Send `false` when the sender has changed over.",
    )


class WebhookOut(serializers.Serializer[Any]):
    """Webhook settings of a source. Secrets are never returned."""

    preset = serializers.ChoiceField(choices=list(PRESETS), help_text=PRESET_HELP)
    headers = serializers.ListField(child=serializers.CharField(), help_text=HEADERS_HELP)
    preset_headers = serializers.SerializerMethodField(help_text="Names of request headers that the preset keeps.")
    secrets = serializers.SerializerMethodField(help_text="Number of secrets that are valid: 0 to 2.")
    id_from = serializers.SerializerMethodField(help_text="Where the sender names the delivery; empty: nowhere.")
    type_from = serializers.SerializerMethodField(help_text="Where the sender names the type of an event.")
    version = serializers.IntegerField(help_text="Grows with each change.")
    changed_at = serializers.DateTimeField()

    def get_preset_headers(self, row: SourceWebhook) -> list[str]:
        """Return the names of the headers that the preset keeps."""
        return list(preset_of(row).headers)

    def get_secrets(self, row: SourceWebhook) -> int:
        """Return the number of secrets."""
        return len(row.secrets)

    def get_id_from(self, row: SourceWebhook) -> str:
        """Return where the sender names the delivery."""
        return place_words(preset_of(row).id)

    def get_type_from(self, row: SourceWebhook) -> str:
        """Return where the sender names the type of an event."""
        return place_words(preset_of(row).type)
