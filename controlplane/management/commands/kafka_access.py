"""`manage.py kafka_access roles|customer`: ACLs of Penstock's processes, and access of tenants to their own topics.

Run it with a PENSTOCK_KAFKA_SETTINGS of a principal that may alter the cluster: docs/managed-kafka.md.
"""

from typing import Any

import msgspec
from confluent_kafka import KafkaException
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from controlplane.kafka import kafka_clients
from controlplane.kafka_access.acls import ROLES, role_acls
from controlplane.kafka_access.apply import KafkaAccess
from controlplane.kafka_access.customers import BYTES_PER_S, grant_access, revoke_access
from controlplane.kafka_access.quotas import QuotaNotSetError
from mgmt.models import Tenant


class Command(BaseCommand):
    """Print the ACLs of roles, or one JSON line about a tenant's access."""

    help = "Print or apply the ACLs of Penstock's roles on Kafka; grant or revoke a tenant's access to its own topics."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        """Add `roles` and `customer` with their options."""
        kinds = parser.add_subparsers(dest="kind", required=True)
        roles = kinds.add_parser("roles", help="print the ACLs of all roles")
        roles.add_argument("--apply", action="store_true", help="write them to Kafka, and remove others of these roles")
        roles.add_argument(
            "--suffix", default="", help="of second users, to rotate passwords: --suffix=-2 is for penstock-ingest-2"
        )
        customer = kinds.add_parser("customer", help="grant a tenant access to the topics of its topic destinations")
        customer.add_argument("--tenant", required=True, help="a tenant's id, or its name if there is one of that name")
        customer.add_argument("--keep-password", action="store_true", help="update ACLs and quota only")
        customer.add_argument("--revoke", action="store_true", help="remove principal, ACLs and quota instead")
        customer.add_argument(
            "--bytes-per-s", type=int, default=BYTES_PER_S, help="limit of all its consumers, on each broker"
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        """Run the subcommand. Raises CommandError."""
        try:
            self._roles(options) if options["kind"] == "roles" else self._customer(options)
        except KafkaException as exc:
            raise CommandError(f"Kafka: {exc.args[0].str()}") from exc
        except QuotaNotSetError as exc:
            raise CommandError(str(exc)) from exc

    def _roles(self, options: dict[str, Any]) -> None:
        if options["apply"]:
            KafkaAccess(kafka_clients(settings.PENSTOCK_KAFKA).admin()).set_role_acls(options["suffix"])
        for role, runs in ROLES.items():
            self.stdout.write("\n".join([f"# {role}: {runs}", *map(str, role_acls(role, options["suffix"]))]))

    def _customer(self, options: dict[str, Any]) -> None:
        tenant = _tenant(options["tenant"])
        if options["bytes_per_s"] <= 0:
            raise CommandError(f"--bytes-per-s: needs 1 or more, got {options['bytes_per_s']}")
        if options["revoke"]:
            revoke_access(tenant=tenant)
            self.stdout.write(msgspec.json.encode({"tenant": tenant.id, "revoked": True}).decode())
            return
        made = grant_access(
            tenant=tenant, new_password=not options["keep_password"], bytes_per_s=options["bytes_per_s"]
        )
        self.stdout.write(msgspec.json.encode(made).decode())


def _tenant(text: str) -> Tenant:
    """Return the tenant with this id or, if there is none, with this name: a name may be another tenant's id."""
    if by_id := Tenant.objects.filter(id=text).first():
        return by_id
    try:
        return Tenant.objects.get(name=text)
    except Tenant.DoesNotExist as exc:
        raise CommandError(str(exc)) from exc
    except Tenant.MultipleObjectsReturned as exc:
        raise CommandError(f"several tenants are named {text}: use the tenant's id") from exc
