"""`manage.py observe`: the Observer process."""

from typing import Any

from django.core.management.base import BaseCommand
from django.utils.module_loading import import_string


class Command(BaseCommand):
    """Hands over to the control plane."""

    requires_system_checks: list[str] = []  # they load every page: the truth must be told while one of those is broken
    help = "Read audits, attempts and heartbeats into rows, and seal minutes, until SIGTERM."

    def handle(self, *_args: Any, **_options: Any) -> None:
        """Run until told to end. By name, for management imports nothing of the control plane (see decision 0302)."""
        import_string("controlplane.observer.main.main")()
