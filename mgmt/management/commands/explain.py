"""`manage.py explain orders`: why a pipe or a cell is slow, paused, not scaled or not deployable now."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone
from django.utils.module_loading import import_string


class Command(BaseCommand):
    """Prints what the control plane goes by. By name, for management imports nothing of it (see decision 0302)."""

    requires_system_checks: list[str] = []
    help = "Say in words why a pipe or a cell is slow, paused, not scaled or not deployable now."

    def add_arguments(self, parser: CommandParser) -> None:
        """What to explain."""
        parser.add_argument("name", help="a pipe's id or name, or a cell's id")

    def handle(self, *_args: Any, **options: Any) -> None:
        """One line for each thing that is known."""
        try:
            lines = import_string("controlplane.explain.explain")(options["name"], timezone.now())
        except import_string("controlplane.explain.UnknownError") as exc:
            raise CommandError(str(exc)) from exc
        self.stdout.write("\n".join(lines))
