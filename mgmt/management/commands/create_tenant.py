"""`manage.py create_tenant --name Acme --owner-email ada@acme.example`: create a tenant and invite its owner."""

import json
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from mgmt.services import InvalidValue, ServiceError, open_tenant


class Command(BaseCommand):
    """Print the tenant's id as one JSON line. The e-mail with the link is sent as PENSTOCK_MAIL_URL says."""

    help = "Create a tenant and invite its first owner by e-mail."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the tenant's name and the address of its owner."""
        parser.add_argument("--name", required=True, help="name of the tenant, as its members see it")
        parser.add_argument("--owner-email", required=True, help="address of the first owner")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Create the tenant. An e-mail that could not be sent is an error, but the tenant exists then."""
        try:
            tenant, invitation = open_tenant(
                name=options["name"], owner_email=options["owner_email"], by=None, now=timezone.now()
            )
        except (InvalidValue, ServiceError) as exc:
            raise CommandError(str(exc)) from exc
        self.stdout.write(json.dumps({"tenant": tenant.id, "invited": invitation.email}))
        if invitation.mail_error:
            raise CommandError(
                f"The tenant exists, but the e-mail was not sent: {invitation.mail_error}. "
                "Correct PENSTOCK_MAIL_URL, then invite the owner on the staff page Tenants."
            )
