"""`manage.py bootstrap`: create the rows that a fresh installation needs. Safe to run again."""

import json
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from controlplane.deployer.builds import publish_build
from mgmt.pipes.services.demo import ensure_demo_tenant, ensure_first_cell, ensure_staff_user
from mgmt.services import make_sign_in_link


class Command(BaseCommand):
    """Print one JSON line, with sign-in links only if there is a demo tenant."""

    help = (
        "Create the first cell and roll out the installed release; in development, create the demo tenant. Prints JSON."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Add `--demo`, which creates the demo users in production too, and `--box-starts`."""
        parser.add_argument(
            "--demo", action="store_true", help="create the demo tenant and its links in production, too"
        )

        parser.add_argument(
            "--box-starts",
            action="store_true",
            help="no ingest replica runs yet: the first ones run the installed code",
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        """Create the missing rows."""
        made = {"cell": ensure_first_cell().id}
        made["release"] = publish_build(box_starts=options["box_starts"])
        if options["demo"] or not settings.PRODUCTION:
            tenant, alice = ensure_demo_tenant()
            base_url = settings.PENSTOCK_WEB_URL
            made |= {
                "tenant": tenant.id,
                "sign_in_url": make_sign_in_link(user=alice, base_url=base_url),
                "staff_sign_in_url": make_sign_in_link(user=ensure_staff_user(), base_url=base_url),
            }
        self.stdout.write(json.dumps(made))
