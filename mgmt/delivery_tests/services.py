"""Services of test requests to destinations.

They only store the request; the control plane sends it (controlplane.delivery_test).
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final
from urllib.parse import urlsplit

import structlog
from django.conf import settings
from django.db import transaction

from dataplane.plan.dryrun import DryRun, OutboundRequest, auth_shown
from dataplane.spec import HttpDestination, SpecError, destination_of, spec_to_builtins
from mgmt.audit.services import record
from mgmt.errors import DestinationRemovedError, NothingToSendError, TooManyTestsError
from mgmt.models import Destination, DestinationTest, Pipe, Tenant, User
from mgmt.pipes.queries.dry_run import dry_run_spec
from mgmt.quotas.services import hold_tenant
from mgmt.sandbox import checked_spec_of

log = structlog.get_logger(__name__)

MOST_A_MINUTE: Final = 10  # of one tenant, because each is a request to an address of the tenant's choice
MINUTE: Final = timedelta(minutes=1)
TEST_BODY: Final = '{"type": "penstock.test", "says": "A test request. Nothing happened."}'
_MADE_WHEN_SENT: Final = ("webhook-", "penstock-position:")


def request_draft_test(
    *,
    tenant: Tenant,
    spec: Mapping[str, Any],
    destination: str,
    event: bytes,
    by: User,
    now: datetime,
    source: str = "",
    pipe: Pipe | None = None,
) -> DestinationTest:
    """Request a test of a destination of an unsaved spec, with an event. The receiver cannot verify its signature.

    Raises SpecError, DestinationForbidden, NothingToSendError, TooManyTestsError.
    """
    run = dry_run_spec(spec, _bounded(event), source=source, tenant=tenant, pipe_id=pipe.id if pipe else "")
    document = spec_to_builtins(checked_spec_of(spec))
    if destination not in document["destinations"]:
        raise SpecError("destination", f"needs a destination of the spec, one of {sorted(document['destinations'])}")
    config = document["destinations"][destination]
    return _ask(tenant, None, destination, config, _request(run, destination), by=by, now=now)


def request_destination_test(*, destination: Destination, event: bytes, by: User, now: datetime) -> DestinationTest:
    """Request a test of a saved destination, signed with its own secrets. The pipe's steps are left out.

    Raises SpecError, DestinationForbidden, DestinationRemovedError, NothingToSendError, TooManyTestsError.
    """
    if destination.state == Destination.State.REMOVED:
        raise DestinationRemovedError(f"{destination.name} was removed. Publish a revision that includes it again.")
    name, tenant = destination.name, destination.pipe.tenant
    spec = {"sources": {"test": {}}, "destinations": {name: destination.config}}
    run = dry_run_spec(spec, _bounded(event), tenant=tenant, pipe_id=destination.pipe_id)
    return _ask(tenant, destination.pipe, name, destination.config, _request(run, name), by=by, now=now)


def _bounded(event: bytes) -> bytes:
    """Return the event. Raises SpecError if it exceeds the size limit of ingest."""
    if len(event) > settings.PENSTOCK_MAX_EVENT_BYTES:
        raise SpecError("event", f"needs at most {settings.PENSTOCK_MAX_EVENT_BYTES} bytes, got {len(event)}")
    return event


def _request(run: DryRun, destination: str) -> OutboundRequest:
    """Return the first request to the destination. Raises NothingToSendError."""
    found = [one for one in run.requests if one.destination == destination]
    if not found:
        raise NothingToSendError(
            f"This event does not reach {destination}. Use an event that does: the dry run shows its destinations."
        )
    if found[0].method == "PUT":
        raise NothingToSendError(f"{destination} is a bucket: a test would leave an object. Send an event instead.")
    if found[0].method == "INSERT":
        raise NothingToSendError(f"{destination} is a database: a test would leave a row. Send an event instead.")
    if found[0].method != "POST":
        raise NothingToSendError(f"{destination} is stored by Penstock itself, so there is no request to test.")
    if found[0].note.startswith("not sent"):
        raise NothingToSendError(f"{destination}: {found[0].note}")
    return found[0]


def _ask(
    tenant: Tenant,
    pipe: Pipe | None,
    name: str,
    config: Mapping[str, Any],
    request: OutboundRequest,
    *,
    by: User,
    now: datetime,
) -> DestinationTest:
    row = DestinationTest(tenant=tenant, pipe=pipe, destination=name, config=dict(config), by=by, created_at=now)
    row.url, row.headers, row.body = request.url, _headers(request, config), request.body
    if "\0" in f"{row.url}{row.headers}{row.body}":
        raise SpecError("event", "must not contain the character U+0000")
    with transaction.atomic():
        hold_tenant(tenant.id)
        if DestinationTest.objects.filter(tenant=tenant, created_at__gt=now - MINUTE).count() >= MOST_A_MINUTE:
            raise TooManyTestsError(f"A tenant may send {MOST_A_MINUTE} test requests a minute. Wait a minute.")
        row.save(force_insert=True)
        after = {"host": urlsplit(row.url).hostname}
        record(tenant=tenant, by=by, action="delivery_test.requested", target=row, after=after, pipe=pipe)
    log.info("test request queued", tenant=tenant.id, pipe=pipe and pipe.id, test=row.id, by=by.username)
    return row


def _headers(request: OutboundRequest, config: Mapping[str, Any]) -> list[str]:
    """Return the header lines that are known now; id, time, signature and authentication are added when it is sent."""
    to = destination_of(config)
    secret = auth_shown(to) if isinstance(to, HttpDestination) else []
    return [line for line in request.headers if not line.startswith(_MADE_WHEN_SENT) and line not in secret]
