"""`manage.py move_pipe orders c2 --by root --reason "c1 is full"`: migrate a pipe to another cell."""

import json
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db.models import Q
from django.utils import timezone

from mgmt.models import Cell, Pipe, User
from mgmt.services import InvalidValue, ServiceError, request_migration


class Command(BaseCommand):
    """Print one JSON line. The Provisioner carries the migration out; `manage.py explain` reports its progress."""

    help = "Request a migration of a pipe to another cell while traffic continues."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the pipe, the cell, `--by` and `--reason`."""
        parser.add_argument("pipe", help="a pipe's id, or its name if there is one of that name")
        parser.add_argument("cell")
        parser.add_argument("--by", required=True, help="user name of a member of staff")
        parser.add_argument("--reason", required=True, help="shown in the control audit")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Request the migration."""
        try:
            row = request_migration(
                pipe=Pipe.objects.get(Q(id=options["pipe"]) | Q(name=options["pipe"])),
                target=Cell.objects.get(id=options["cell"]),
                reason=options["reason"],
                by=User.objects.get(username=options["by"], is_staff=True),
                now=timezone.now(),
            )
        except (ServiceError, InvalidValue, Pipe.DoesNotExist, Cell.DoesNotExist, User.DoesNotExist) as exc:
            raise CommandError(str(exc)) from exc
        except Pipe.MultipleObjectsReturned as exc:
            raise CommandError(f"several pipes are named {options['pipe']}: use the pipe's id") from exc
        self.stdout.write(json.dumps({"relocation": row.id, "from": row.source_id, "to": row.target_id}))
