"""`manage.py observe`: the Observer process."""

from typing import Any

from django.core.management.base import BaseCommand

from controlplane.observer.main import main


class Command(BaseCommand):
    """Run the Observer in this process."""

    # The checks load every page, and the Observer must run while a page is broken.
    requires_system_checks: list[str] = []
    help = "Read audits, attempts and heartbeats into rows, and seal minutes, until SIGTERM."

    def handle(self, *_args: Any, **_options: Any) -> None:
        """Run until SIGTERM."""
        main()
