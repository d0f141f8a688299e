from typing import Any
from urllib.parse import urlsplit

from django.db import migrations, models


def endpoint_of(config: dict[str, Any]) -> str:
    """As dataplane.spec.endpoint_of was when this was written."""
    parts = urlsplit(config.get("url", ""))
    if not parts.hostname:
        return ""
    port = parts.port or {"http": 80, "https": 443}[parts.scheme]
    origin = f"{parts.scheme}://{parts.hostname.lower().removesuffix('.')}:{port}"
    token_url = config.get("auth", {}).get("token_url", "")
    return f"{origin} {token_url}" if token_url else origin


def keep_for_their_endpoint(apps: Any, _editor: Any) -> None:
    """A credential of before belongs to the endpoint that its destination has now.

    Its sealed text names no endpoint yet: lanes take it as it is, until it is entered again or `rotate_secrets` runs.
    """
    rows = apps.get_model("mgmt", "Destination").objects
    for row in rows.exclude(credential=""):
        rows.filter(pk=row.pk).update(credentials=[[endpoint_of(row.config), row.credential]])


def keep_the_live_one(apps: Any, _editor: Any) -> None:
    rows = apps.get_model("mgmt", "Destination").objects
    for row in rows.exclude(credentials=[]):
        endpoint = endpoint_of(row.config)
        token = next((token for known, token in row.credentials if known == endpoint), "")
        rows.filter(pk=row.pk).update(credential=token)


class Migration(migrations.Migration):
    dependencies = [("mgmt", "0031_limit_counts")]

    operations = [
        migrations.AddField(
            "destination",
            "credentials",
            models.JSONField(
                default=list,
                help_text="[[endpoint, sealed secret], ...]: each for the endpoint it was entered for.",
            ),
        ),
        migrations.RunPython(keep_for_their_endpoint, keep_the_live_one),
        migrations.RemoveField("destination", "credential"),
    ]
