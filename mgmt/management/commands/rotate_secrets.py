"""`manage.py rotate_secrets`: run it after adding a new first key to PENSTOCK_FERNET_KEYS, before removing the old."""

from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError

from mgmt.tenancy.services.rotation import rotate_secrets


class Command(BaseCommand):
    """Print the number of rows written."""

    help = "Re-encrypt each stored secret with the first of PENSTOCK_FERNET_KEYS."

    def handle(self, *_args: Any, **_options: Any) -> None:
        """Re-encrypt all secrets, or those before the first that cannot be decrypted."""
        try:
            count = rotate_secrets()
        except (ImproperlyConfigured, ValueError) as exc:
            raise CommandError(str(exc)) from exc
        self.stdout.write(
            f"{count} rows are encrypted with the first key. Remove older keys once every lane has the new records."
        )
