"""The management plane as a Django application."""

from typing import Any

from django.apps import AppConfig
from django.db import connections
from django.db.models import CharField
from django.db.models.signals import post_migrate

from mgmt.array_lookup import AnyOf
from mgmt.tenancy.row_policies import grant_rights


class MgmtConfig(AppConfig):
    """Django app of the management plane: models, services, API, console and admin under one label."""

    name = "mgmt"
    verbose_name = "Penstock"

    def ready(self) -> None:
        """Register the lookups that queries use, and the rights of the web role on new tables."""
        CharField.register_lookup(AnyOf)
        post_migrate.connect(_grant_rights, sender=self)


def _grant_rights(using: str, **_signal: Any) -> None:
    grant_rights(connections[using])
