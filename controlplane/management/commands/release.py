"""`manage.py release`: build the installed data plane into a release, and roll it out on request."""

import json
from datetime import UTC, datetime
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from controlplane.deployer.builds import register_build
from mgmt.services import InvalidValue, ServiceError, request_rollout


class Command(BaseCommand):
    """Print one JSON line."""

    help = "Build the installed data plane into an immutable release and register it; with --roll-out, roll it out."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add `--note`, `--roll-out`."""
        parser.add_argument("--note", default="", help="description for the list of releases")
        parser.add_argument("--roll-out", action="store_true", help="request it on every cell that has another release")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Build and register the release; request a rollout with --roll-out. Raises CommandError."""
        try:
            release = register_build(options["note"])
            made = {"release": release.id, "wire": release.wire}
            if options["roll_out"]:
                made["rollout"] = request_rollout(release=release, author=None, now=datetime.now(UTC)).id
        except (ServiceError, InvalidValue) as exc:
            raise CommandError(str(exc)) from exc
        self.stdout.write(json.dumps(made))
