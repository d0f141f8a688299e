"""The management plane as a Django application."""

from django.apps import AppConfig


class MgmtConfig(AppConfig):
    """Django app of the management plane: models, services, API, console and admin under one label."""

    name = "mgmt"
    verbose_name = "Penstock"
