"""`manage.py demo_pipe`: the pipe that the demo sends through."""

import json
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from dataplane.spec import SpecError
from mgmt.services import InvalidValue, Refused, make_sign_in_link
from mgmt.services.demo import (
    ensure_demo_pipe,
    ensure_demo_tenant,
    ensure_first_cell,
    renew_demo_keys,
)
from mgmt.services.full_demo import ensure_full_demo_pipe


class Command(BaseCommand):
    """Prints one JSON line with the pipe's id and a new key of each source; the older ones end."""

    help = "Make or find the demo's pipe to a URL, make a key to it, print both as one JSON line."

    def add_arguments(self, parser: CommandParser) -> None:
        """Where it delivers to, and its name."""
        parser.add_argument("--url", required=True, help="where the pipe delivers to")
        parser.add_argument("--name", default="demo", help="the pipe's name")
        parser.add_argument("--full", action="store_true", help="the pipe with a bit of everything")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Make what is missing."""
        ensure_first_cell()
        tenant, alice = ensure_demo_tenant()
        try:
            ensure = ensure_full_demo_pipe if options["full"] else ensure_demo_pipe
            pipe = ensure(url=options["url"], name=options["name"])
            keys = renew_demo_keys(pipe=pipe)
        except (SpecError, InvalidValue, Refused) as exc:
            raise CommandError(str(exc)) from exc
        link = make_sign_in_link(user=alice, base_url=settings.PENSTOCK_WEB_URL)
        source = min(keys)
        made = {"pipe": pipe.id, "tenant": tenant.id, "source": source, "key": keys[source], "keys": keys}
        self.stdout.write(json.dumps(made | {"sign_in_url": link}))
