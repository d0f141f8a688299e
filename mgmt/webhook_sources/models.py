"""Model of the webhook settings of a source."""

from django.db import models

from mgmt.pipes.models import Source


class SourceWebhook(models.Model):
    """Sender of a source that takes requests at a URL of its own; the URL's secret part is an API key.

    `version` grows with each change. Secrets are sealed tokens (dataplane.tables.sealed), the newest first.
    """

    source = models.OneToOneField(Source, models.PROTECT, primary_key=True, related_name="webhook")
    preset = models.CharField(max_length=40, help_text="Name in dataplane.webhooks.PRESETS.")
    secrets = models.JSONField(default=list)
    headers = models.JSONField(default=list, help_text="Request headers that events keep besides the preset's.")
    version = models.PositiveIntegerField(default=0)
    changed_at = models.DateTimeField(auto_now=True)

    def __str__(self) -> str:
        return f"webhook of {self.source_id}"
