"""`manage.py rotate_secrets`: after a new key was put in front of PENSTOCK_FERNET_KEYS, before the old one goes."""

from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError

from mgmt.services.rotation import rotate_secrets


class Command(BaseCommand):
    """Prints how many rows were written."""

    help = "Encrypt every stored secret anew under the first of PENSTOCK_FERNET_KEYS."

    def handle(self, *_args: Any, **_options: Any) -> None:
        """All of them, or up to the first that cannot be opened."""
        try:
            count = rotate_secrets()
        except (ImproperlyConfigured, ValueError) as exc:
            raise CommandError(str(exc)) from exc
        self.stdout.write(f"{count} rows are under the first key. Older keys may go once every lane has them.")
