"""`manage.py release`: make the data plane that is installed here a release, and roll it out if asked."""

import json
from datetime import UTC, datetime
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils.module_loading import import_string

from mgmt.services import InvalidValue, Refused, request_rollout


class Command(BaseCommand):
    """Prints one JSON line."""

    help = "Build the installed data plane into an immutable release and make it known; with --roll-out, bring it out."

    def add_arguments(self, parser: CommandParser) -> None:
        """`--note TEXT`, `--roll-out`."""
        parser.add_argument("--note", default="", help="what it is, for those who look at the list of releases")
        parser.add_argument("--roll-out", action="store_true", help="ask for it on every cell that has another one")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Do it. By name, for management imports nothing of the control plane (see decision 0302)."""
        try:
            release = import_string("controlplane.deployer.register.register_build")(options["note"])
            made = {"release": release.id, "wire": release.wire}
            if options["roll_out"]:
                made["rollout"] = request_rollout(release=release, author=None, now=datetime.now(UTC)).id
        except (Refused, InvalidValue) as exc:
            raise CommandError(str(exc)) from exc
        self.stdout.write(json.dumps(made))
