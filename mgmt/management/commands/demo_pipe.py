"""`manage.py demo_pipe`: the pipe that the demo sends through."""

import json
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from dataplane.spec import SpecError
from mgmt.services import InvalidValue, Refused, make_sign_in_link
from mgmt.services.demo import DEMO_SOURCE, ensure_demo_pipe, ensure_demo_tenant, ensure_first_cell, renew_demo_key


class Command(BaseCommand):
    """Prints one JSON line with the pipe's id and a new key; the older ones end."""

    help = "Make or find the demo's pipe to a URL, make a key to it, print both as one JSON line."

    def add_arguments(self, parser: CommandParser) -> None:
        """Where it delivers to, and its name."""
        parser.add_argument("--url", required=True, help="where the pipe delivers to")
        parser.add_argument("--name", default="demo", help="the pipe's name")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Make what is missing."""
        ensure_first_cell()
        _tenant, alice = ensure_demo_tenant()
        try:
            pipe = ensure_demo_pipe(url=options["url"], name=options["name"])
            key = renew_demo_key(pipe=pipe)
        except (SpecError, InvalidValue, Refused) as exc:
            raise CommandError(str(exc)) from exc
        link = make_sign_in_link(user=alice, base_url=settings.PENSTOCK_WEB_URL)
        self.stdout.write(json.dumps({"pipe": pipe.id, "source": DEMO_SOURCE, "key": key, "sign_in_url": link}))
