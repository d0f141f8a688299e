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
        """Add `--note`, `--roll-out` and `--repair`."""
        parser.add_argument("--note", default="", help="description for the list of releases")
        parser.add_argument("--roll-out", action="store_true", help="request it wherever another release runs")
        parser.add_argument("--repair", action="store_true", help="with --roll-out: on unstable cells, too")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Build and register the release; request a rollout with --roll-out. Raises CommandError."""
        if options["repair"] and not options["roll_out"]:
            raise CommandError("--repair needs --roll-out")
        try:
            release = register_build(options["note"])
            made = {"release": release.id, "wire": release.wire}
            if options["roll_out"]:
                now = datetime.now(UTC)
                made["rollout"] = request_rollout(release=release, author=None, now=now, is_repair=options["repair"]).id
        except (ServiceError, InvalidValue) as exc:
            raise CommandError(str(exc)) from exc
        self.stdout.write(json.dumps(made))
