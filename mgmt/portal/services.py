"""Services of the customer portal: create and revoke links, list the sites that may embed it, change an endpoint's URL.

The token of a link is random and shown once. The database has its digest, so that a copy of it opens no portal.
"""

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

import structlog
from django.db import transaction

from dataplane.spec import parse_pipe_spec, spec_to_builtins
from mgmt.audit.services import record
from mgmt.errors import InvalidValue, LimitReachedError, RevisionConflictError
from mgmt.models import Destination, PipeRevision, PortalLink, Tenant, User
from mgmt.pipes.services.revisions import current_revision, publish_revision
from mgmt.portal.queries import open_portal_links
from mgmt.quotas.services import hold_tenant
from mgmt.tenancy.names import checked_name
from mgmt.tenancy.secrets import link_token_digest, new_link_token

DEFAULT_MINUTES: Final = 60
MAX_MINUTES: Final = 24 * 60
MAX_LINKS: Final = 1_000  # of a destination that are open at a time
MAX_ORIGINS: Final = 20
KEEP: Final = timedelta(days=7)  # after its end: the frame can say that the link expired
_ACCENT: Final = re.compile(r"#[0-9a-f]{6}", re.IGNORECASE)
# An origin of CSP without wildcards: every character that could end the directive is excluded.
_ORIGIN: Final = re.compile(
    r"(?:https://(?:[a-z0-9-]{1,63}\.)*[a-z0-9-]{1,63}|http://(?:localhost|127\.0\.0\.1))(?::[0-9]{1,5})?"
)
log = structlog.get_logger(__name__)


@transaction.atomic
def create_portal_link(
    *,
    destination: Destination,
    author: User,
    label: str,
    now: datetime,
    minutes: int = DEFAULT_MINUTES,
    may_redrive: bool = False,
    may_edit: bool = False,
    accent: str = "",
) -> tuple[PortalLink, str]:
    """Create a link to one endpoint. Return the row and its token, which cannot be shown again.

    minutes: until it expires, 1 to MAX_MINUTES

    Raises InvalidValue, LimitReachedError.
    """
    label = checked_name("label", label)
    if not 1 <= minutes <= MAX_MINUTES:
        raise InvalidValue("minutes", f"needs 1 to {MAX_MINUTES} minutes")
    if accent and not _ACCENT.fullmatch(accent):
        raise InvalidValue("accent", "needs a colour as #rrggbb")
    if destination.config["type"] != "http" or destination.state == Destination.State.REMOVED:
        raise InvalidValue("destination", "needs a destination of type http that the live revision contains")
    pipe = destination.pipe
    hold_tenant(pipe.tenant_id)
    if open_portal_links(tenant_id=pipe.tenant_id, now=now, destination_id=destination.id).count() >= MAX_LINKS:
        raise LimitReachedError(f"A destination has at most {MAX_LINKS} open portal links. Revoke them first.")
    PortalLink.objects.filter(destination=destination, expires_at__lt=now - KEEP).delete()
    token = new_link_token()
    link = PortalLink.objects.create(
        destination=destination,
        label=label,
        digest=link_token_digest(token),
        may_redrive=may_redrive,
        may_edit=may_edit,
        accent=accent.lower(),
        author=author,
        created_at=now,
        expires_at=now + timedelta(minutes=minutes),
    )
    after = {"expires_at": link.expires_at, "may_redrive": may_redrive, "may_edit": may_edit}
    record(pipe=pipe, by=author, action="portal_link.created", target=link, after=after)
    log.info("portal link created", pipe=pipe.id, destination=destination.name, link=link.id)
    return link, token


@transaction.atomic
def revoke_portal_links(*, destination: Destination, now: datetime, by: User) -> int:
    """Revoke all open links of a destination; return their number."""
    rows = PortalLink.objects.filter(destination=destination, revoked_at=None, expires_at__gt=now)
    count = rows.update(revoked_at=now)
    if count:
        record(pipe=destination.pipe, by=by, action="portal_links.revoked", target=destination, after={"count": count})
        log.info("portal links revoked", pipe=destination.pipe_id, destination=destination.name, count=count)
    return count


@transaction.atomic
def set_portal_origins(*, tenant: Tenant, origins: Sequence[str], by: User) -> list[str]:
    """Set the origins whose pages may embed the tenant's portals; return them. Raises InvalidValue."""
    wanted = list(dict.fromkeys(origin.strip().rstrip("/").lower() for origin in origins if origin.strip()))
    for origin in wanted:
        if not _ORIGIN.fullmatch(origin):
            raise InvalidValue("origins", f"needs origins such as https://app.example.com, got {origin[:80]}")
    if len(wanted) > MAX_ORIGINS:
        raise InvalidValue("origins", f"needs at most {MAX_ORIGINS} origins, got {len(wanted)}")
    row = Tenant.objects.select_for_update().get(id=tenant.id)
    before = row.portal_origins
    Tenant.objects.filter(id=tenant.id).update(portal_origins=wanted)
    action = "tenant.portal_origins_set"
    record(tenant=row, by=by, action=action, target=row, before={"origins": before}, after={"origins": wanted})
    return wanted


def change_endpoint_url(*, destination: Destination, url: str, by: User) -> PipeRevision:
    """Publish the live revision with another URL of this destination for all keys, checked as in the editor.

    Nothing else changes, so a ramp would only send a share of the events to an address that the customer has given up.
    A revision that is not live yet is never published by this: it would skip its own ramp.

    Raises as publish_revision, RevisionConflictError also while another revision becomes live.
    """
    pipe = destination.pipe
    newest = pipe.revisions.latest("number")  # first: a revision that is published meanwhile is a conflict
    current = current_revision(pipe)
    if current.state != PipeRevision.State.LIVE:
        raise RevisionConflictError(f"Revision {current.number} of {pipe.name} is not live yet. Wait until it is.")
    spec = spec_to_builtins(parse_pipe_spec(current.spec))
    name = destination.name
    destinations = {**spec["destinations"], name: {**spec["destinations"][name], "url": url}}
    return publish_revision(
        pipe=pipe,
        spec={**spec, "destinations": destinations},
        based_on=newest.number,
        author=by,
        at_once=True,
        must_change=True,
    )
