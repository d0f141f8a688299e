"""`manage.py move_pipe orders c2 --by root --reason "c1 is full"`: asks that a pipe be moved to another cell."""

import json
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db.models import Q
from django.utils import timezone

from mgmt.models import Cell, Pipe, User
from mgmt.services import InvalidValue, Refused, request_relocation


class Command(BaseCommand):
    """Prints one JSON line. The Provisioner does it; `manage.py explain` says how far it is."""

    help = "Ask that a pipe be moved to another cell, under traffic."

    def add_arguments(self, parser: CommandParser) -> None:
        """Which pipe, where to, who asks and why."""
        parser.add_argument("pipe", help="a pipe's id, or its name if there is one of that name")
        parser.add_argument("cell")
        parser.add_argument("--by", required=True, help="the user name of a member of staff")
        parser.add_argument("--reason", required=True, help="others will ask why")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Ask for it."""
        try:
            row = request_relocation(
                pipe=Pipe.objects.get(Q(id=options["pipe"]) | Q(name=options["pipe"])),
                target=Cell.objects.get(id=options["cell"]),
                reason=options["reason"],
                by=User.objects.get(username=options["by"], is_staff=True),
                now=timezone.now(),
            )
        except (Refused, InvalidValue, Pipe.DoesNotExist, Cell.DoesNotExist, User.DoesNotExist) as exc:
            raise CommandError(str(exc)) from exc
        except Pipe.MultipleObjectsReturned as exc:
            raise CommandError(f"several pipes are called {options['pipe']}: name one by its id") from exc
        self.stdout.write(json.dumps({"relocation": row.id, "from": row.source_id, "to": row.target_id}))
