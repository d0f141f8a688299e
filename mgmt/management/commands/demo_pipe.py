"""`manage.py demo_pipe`: create or find the pipe of the demo."""

import json
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from dataplane.spec import SpecError
from mgmt.pipes.services.demo import (
    ensure_demo_pipe,
    ensure_demo_tenant,
    ensure_first_cell,
    renew_demo_keys,
)
from mgmt.pipes.services.full_demo import ensure_full_demo_pipe
from mgmt.services import InvalidValue, ServiceError, make_sign_in_link


class Command(BaseCommand):
    """Print one JSON line with the pipe's id and a new key of each source; older demo keys are revoked."""

    help = "Create or find the demo's pipe, create an API key of each source, and print them as one JSON line."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add `--url`, `--name`, `--full`."""
        parser.add_argument("--url", required=True, help="URL to which the pipe delivers")
        parser.add_argument("--name", default="demo", help="the pipe's name")
        parser.add_argument(
            "--full",
            action="store_true",
            help="the pipe with a filter, a look-up, a window and three kinds of destinations",
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        """Create the rows that are missing, and new keys."""
        ensure_first_cell()
        tenant, alice = ensure_demo_tenant()
        try:
            ensure = ensure_full_demo_pipe if options["full"] else ensure_demo_pipe
            pipe = ensure(url=options["url"], name=options["name"])
            keys = renew_demo_keys(pipe=pipe)
        except (SpecError, InvalidValue, ServiceError) as exc:
            raise CommandError(str(exc)) from exc
        link = make_sign_in_link(user=alice, base_url=settings.PENSTOCK_WEB_URL)
        source = min(keys)
        made = {"pipe": pipe.id, "tenant": tenant.id, "source": source, "key": keys[source], "keys": keys}
        self.stdout.write(json.dumps(made | {"sign_in_url": link}))
