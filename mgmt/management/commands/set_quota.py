"""`manage.py set_quota acme events_per_s=1000 pipes=default --by root --reason "paid for more"`: set quotas."""

import json
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db.models import Q
from django.utils import timezone

from mgmt.models import Tenant, User
from mgmt.quotas.queries import quota_lines
from mgmt.services import InvalidValue, set_quota


class Command(BaseCommand):
    """Print all quotas of the tenant as one JSON line, after the change if there is one."""

    help = "Show or change the quotas of a tenant."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the tenant, the limits, `--by` and `--reason`."""
        parser.add_argument("tenant", help="a tenant's id, or its name if there is one of that name")
        parser.add_argument("limits", nargs="*", help="kind=limit or kind=default; without any, nothing is changed")
        parser.add_argument("--by", default="", help="user name of a member of staff")
        parser.add_argument("--reason", default="", help="shown in the control audit")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Set the limits, if any are given, and print the quotas."""
        now = timezone.now()
        try:
            tenant = Tenant.objects.get(Q(id=options["tenant"]) | Q(name=options["tenant"]))
            if options["limits"]:
                by = User.objects.get(username=options["by"], is_staff=True)
                limits = dict(map(_limit, options["limits"]))
                set_quota(tenant=tenant, limits=limits, reason=options["reason"], by=by, now=now)
        except (InvalidValue, Tenant.DoesNotExist, User.DoesNotExist) as exc:
            raise CommandError(str(exc)) from exc
        except Tenant.MultipleObjectsReturned as exc:
            raise CommandError(f"several tenants are named {options['tenant']}: use the tenant's id") from exc
        found = {line.kind.name: {"used": line.used, "limit": line.limit} for line in quota_lines(tenant, now)}
        self.stdout.write(json.dumps({"tenant": tenant.id, "quotas": found}))


def _limit(text: str) -> tuple[str, int | None]:
    name, _, limit = text.partition("=")
    if limit != "default" and not limit.isdecimal():
        raise CommandError(f"{text}: needs kind=limit with a whole number, or kind=default")
    return name, None if limit == "default" else int(limit)
