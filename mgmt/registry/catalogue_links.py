"""Services of catalogue links: share a tenant's event catalogue with people who have no account, and revoke that.

The token is random and shown once. The database has its digest, so that a copy of it opens no catalogue.
"""

from datetime import datetime, timedelta
from typing import Final

import structlog
from django.db import transaction

from mgmt.audit.services import record
from mgmt.errors import InvalidValue, LimitReachedError
from mgmt.models import CatalogueLink, Tenant, User
from mgmt.quotas.services import hold_tenant
from mgmt.registry.queries import open_links
from mgmt.tenancy.names import checked_name
from mgmt.tenancy.secrets import link_token_digest, new_link_token

MAX_LINKS: Final = 20  # of a tenant that are open at a time
MAX_DAYS: Final = 365
log = structlog.get_logger(__name__)


@transaction.atomic
def create_catalogue_link(
    *, tenant: Tenant, author: User, label: str, days: int, now: datetime
) -> tuple[CatalogueLink, str]:
    """Create a link. Return the row and its token, which cannot be shown again.

    days: until it expires, 1 to MAX_DAYS

    Raises InvalidValue, LimitReachedError.
    """
    label = checked_name("label", label)
    if not 1 <= days <= MAX_DAYS:
        raise InvalidValue("days", f"needs 1 to {MAX_DAYS} days")
    hold_tenant(tenant.id)
    if open_links(tenant.id, now).count() >= MAX_LINKS:
        raise LimitReachedError(f"A tenant has at most {MAX_LINKS} open links. Revoke one first.")
    token = new_link_token()
    expires_at = now + timedelta(days=days)
    link = CatalogueLink.objects.create(
        tenant=tenant, label=label, digest=link_token_digest(token), author=author, expires_at=expires_at
    )
    after = {"expires_at": expires_at}
    record(tenant=tenant, by=author, action="catalogue_link.created", target=link, after=after)
    log.info("catalogue link created", tenant=tenant.id, link=link.id, expires_at=expires_at.isoformat())
    return link, token


@transaction.atomic
def revoke_catalogue_link(*, link: CatalogueLink, now: datetime, by: User | None = None) -> None:
    """Revoke a link for good. Safe to repeat: the first time is kept."""
    if CatalogueLink.objects.filter(id=link.id, revoked_at=None).update(revoked_at=now):
        record(tenant=link.tenant_id, by=by, action="catalogue_link.revoked", target=link)
        log.info("catalogue link revoked", tenant=link.tenant_id, link=link.id)
