"""`manage.py bootstrap`: what a fresh installation needs, once or as often as one likes."""

import json
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser
from django.utils.module_loading import import_string

from mgmt.services import make_sign_in_link
from mgmt.services.demo import ensure_demo_tenant, ensure_first_cell, ensure_staff_user


class Command(BaseCommand):
    """Prints one JSON line; sign-in links stand in it only where there is a demo."""

    help = "Make the first cell, bring out the installed release, in development make the demo tenant; print JSON."

    def add_arguments(self, parser: CommandParser) -> None:
        """`--demo`: the demo's people in production too."""
        parser.add_argument("--demo", action="store_true", help="make the demo tenant and its links in production too")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Make what is missing."""
        made = {"cell": ensure_first_cell().id}
        # By name, for management imports nothing of the control plane (see decision 0302).
        made["release"] = import_string("controlplane.deployer.register.bring_out")()
        if options["demo"] or not settings.PRODUCTION:
            tenant, alice = ensure_demo_tenant()
            base_url = settings.PENSTOCK_WEB_URL
            made |= {
                "tenant": tenant.id,
                "sign_in_url": make_sign_in_link(user=alice, base_url=base_url),
                "staff_sign_in_url": make_sign_in_link(user=ensure_staff_user(), base_url=base_url),
            }
        self.stdout.write(json.dumps(made))
