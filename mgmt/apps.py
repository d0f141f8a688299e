"""The management plane as a Django application."""

from django.apps import AppConfig
from django.db.models import CharField

from mgmt.array_lookup import AnyOf


class MgmtConfig(AppConfig):
    """Django app of the management plane: models, services, API, console and admin under one label."""

    name = "mgmt"
    verbose_name = "Penstock"

    def ready(self) -> None:
        """Register the lookups that queries use."""
        CharField.register_lookup(AnyOf)
