"""Services of the e-mail domains of a tenant: add, verify by DNS, remove."""

import re
from datetime import datetime
from typing import Final

from django.db import IntegrityError, transaction

from mgmt.audit.services import record
from mgmt.errors import DomainNotVerifiedError, InvalidValue, LimitReachedError, NameTakenError
from mgmt.models import SsoDomain, Tenant, User
from mgmt.quotas.services import hold_tenant
from mgmt.sso.domain_records import record_name, txt_records
from mgmt.sso.provider_steps import provider_step
from mgmt.sso.queries import connection_of
from mgmt.sso.services.connections import need_another_way_in
from mgmt.tenancy.secrets import new_link_token

MOST_DOMAINS: Final = 20
PREFIX: Final = "penstock-verification="
_DOMAIN: Final = re.compile(r"(?=.{4,253}$)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z][a-z0-9-]{0,61}[a-z0-9]")


def add_domain(*, tenant: Tenant, domain: str, by: User) -> SsoDomain:
    """Add an e-mail domain, not verified yet. From the first one on, only addresses at the domains sign in.

    Raises InvalidValue, NameTakenError, LimitReachedError, and SsoError if a wrong first one could lock all owners out.
    """
    domain = domain.strip().lower().removeprefix("@")
    if _DOMAIN.fullmatch(domain) is None:
        raise InvalidValue("domain", "needs a domain such as example.com")
    try:
        with transaction.atomic():
            hold_tenant(tenant.id)
            count = tenant.sso_domains.count()
            if count >= MOST_DOMAINS:
                raise LimitReachedError(f"A tenant may have {MOST_DOMAINS} domains. Remove one first.")
            if count == 0 and (connection := connection_of(tenant.id)) is not None:
                need_another_way_in(connection)
            row = SsoDomain.objects.create(tenant=tenant, domain=domain, token=PREFIX + new_link_token())
            record(tenant=tenant, by=by, action="domain.added", target=row)
            return row
    except IntegrityError as exc:
        raise NameTakenError("This domain is in the list already.") from exc


def verify_domain(*, domain: SsoDomain, by: User, now: datetime) -> None:
    """Mark a domain as verified if its DNS record has the token. Safe to repeat.

    Raises DomainNotVerifiedError, and SsoError as `provider_step`: the name server may be slow.
    """
    if domain.verified_at is not None:
        return
    with provider_step(domain.tenant_id):
        found = txt_records(domain.domain)
    if domain.token not in found:
        raise DomainNotVerifiedError(
            f"DNS shows no TXT record {record_name(domain.domain)} with the value {domain.token}. Create it, wait "
            "until it is visible, and try again."
        )
    try:
        with transaction.atomic():
            if SsoDomain.objects.filter(pk=domain.pk, verified_at=None).update(verified_at=now):
                record(tenant=domain.tenant_id, by=by, action="domain.verified", target=domain)
    except IntegrityError as exc:
        raise DomainNotVerifiedError("Another tenant has verified this domain. Ask the operator of Penstock.") from exc
    domain.verified_at = now


@transaction.atomic
def remove_domain(*, domain: SsoDomain, by: User) -> None:
    """Remove a domain. Addresses that it confirmed keep being confirmed."""
    if SsoDomain.objects.filter(pk=domain.pk).delete()[0]:
        record(tenant=domain.tenant_id, by=by, action="domain.removed", target=domain)
