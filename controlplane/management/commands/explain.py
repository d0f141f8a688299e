"""`manage.py explain orders`: explain why a pipe or a cell is slow, paused, not scaled or not deployable now."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from controlplane.explain import UnknownError, explain


class Command(BaseCommand):
    """Print the state that the control plane acts on."""

    requires_system_checks: list[str] = []
    help = "Explain why a pipe or a cell is slow, paused, not scaled or not deployable now."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the name of the pipe or cell."""
        parser.add_argument("name", help="a pipe's id or name, or a cell's id")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Print one line for each fact. Raises CommandError for an unknown name."""
        try:
            lines = explain(options["name"], timezone.now())
        except UnknownError as exc:
            raise CommandError(str(exc)) from exc
        self.stdout.write("\n".join(lines))
