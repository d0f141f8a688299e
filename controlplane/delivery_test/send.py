"""Send the requested tests concurrently, through the HTTP sender and the address guard of transmit."""

import os
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import structlog
from django.conf import settings
from msgspec import Struct

from controlplane.delivery_test.request import (
    LONGEST_MS,
    DeliveryTestRequest,
    encoded_request,
    http_request_of,
    misfit_result,
    result_of,
    unsent_result,
)
from dataplane.causes import Cause
from dataplane.plan.encoding import EventEncoder
from dataplane.plan.stage import StageError
from dataplane.spec import AvroEncoding, HttpDestination, destination_of, encoding_of
from dataplane.spec.guard import parse_networks
from dataplane.tables.records import DestinationRecord
from dataplane.tables.sealed import opener
from dataplane.transmit.http.secrets import OpenedSecrets, open_secrets
from dataplane.transmit.http.sender import HttpPolicy, HttpSender
from dataplane.transmit.http.signature import signer
from mgmt.models import Destination, DestinationTest
from mgmt.registry.queries import registered_schema
from mgmt.tenancy.secrets import new_signing_secret

DeliveryTestState = DestinationTest.State
MOST_AT_ONCE: Final = 20
POLL_S: Final = 0.1
CUT_SHORT_AFTER: Final = timedelta(milliseconds=2 * LONGEST_MS)
log = structlog.get_logger(__name__)


class _Sent(Struct):
    """Test request in flight."""

    row: DestinationTest
    to: HttpDestination
    secrets: OpenedSecrets


def http_policy() -> HttpPolicy:
    """Return the HTTP policy, which is the one of deliveries."""
    allowed = parse_networks(settings.PENSTOCK_DESTINATION_ALLOW)
    ca_file = os.environ.get("PENSTOCK_DESTINATION_CA", "")
    return HttpPolicy(allowed, https_only=settings.PRODUCTION, ca_file=ca_file, own=settings.PENSTOCK_OWN_INGEST)


def has_requests() -> bool:
    """Return True if a test request waits to be sent."""
    return DestinationTest.objects.filter(state=DeliveryTestState.ASKED).exists()


def give_up_on_lost(now: datetime) -> int:
    """End test requests whose sender crashed; return how many."""
    lost = DestinationTest.objects.filter(state=DeliveryTestState.SENDING, began_at__lt=now - CUT_SHORT_AFTER)
    return lost.update(state=DeliveryTestState.DONE, **unsent_result(Cause.TRANSPORT))


def send_requested() -> int:
    """Send test requests until none is waiting or in flight; return how many were answered."""
    sender, in_flight, answered = HttpSender(http_policy()), dict[str, _Sent](), 0
    try:
        while _begin_requested(sender, in_flight, datetime.now(UTC)) or in_flight:
            for answer in sender.poll(POLL_S):
                sent = in_flight.pop(answer.token)
                _store_result(sent.row, result_of(answer, sent.to, sent.secrets.texts))
                answered += 1
    finally:
        sender.close()
    return answered


def _begin_requested(sender: HttpSender, in_flight: dict[str, _Sent], now: datetime) -> bool:
    """Claim and start test requests up to the limit of MOST_AT_ONCE; return True if one was claimed."""
    rows = DestinationTest.objects.filter(state=DeliveryTestState.ASKED).order_by("created_at")
    claimed = [row for row in rows[: MOST_AT_ONCE - len(in_flight)] if _claim(row, now)]
    for row in claimed:
        to = destination_of(row.config)
        assert isinstance(to, HttpDestination)  # noqa: S101 - the service takes no others
        sent = _Sent(row, to, _secrets_of(row, to))
        if sent.secrets.locked:
            _store_result(row, unsent_result(sent.secrets.locked))
            continue
        try:
            request = _request_of(row, to)
        except StageError as exc:
            _store_result(row, misfit_result(exc.cause, exc.detail))
            continue
        sender.begin(http_request_of(request, sent.secrets, int(time.time())))
        in_flight[row.id] = sent
    return bool(claimed)


def _claim(row: DestinationTest, now: datetime) -> bool:
    """Claim a row by conditional update, so that two workers do not send it twice."""
    mine = DestinationTest.objects.filter(id=row.id, state=DeliveryTestState.ASKED)
    return bool(mine.update(state=DeliveryTestState.SENDING, began_at=now))


def _request_of(row: DestinationTest, to: HttpDestination) -> DeliveryTestRequest:
    """Return the request, encoded as the destination wants it. Raises StageError if its message does not fit."""
    request = DeliveryTestRequest(row.id, row.url, row.headers, row.body.encode(), to)
    if not isinstance(encoding := encoding_of(to), AvroEncoding):
        return request
    schema = registered_schema(row.tenant_id, encoding.subject, encoding.version)
    if schema is None:
        raise StageError(Cause.SCHEMA, f"{encoding.subject}@{encoding.version}: needs a registered version")
    encoder = EventEncoder(encoding, schema.schema_id, schema.fingerprint, schema.document)
    return encoded_request(request, encoder)


def _secrets_of(row: DestinationTest, to: HttpDestination) -> OpenedSecrets:
    """Return the destination's secrets; for a destination that is not saved, a new secret for this request only."""
    if row.pipe_id is None:
        return OpenedSecrets(signers=(signer(new_signing_secret()),))
    saved = Destination.objects.filter(pipe=row.pipe_id, name=row.destination).first()
    if saved is None:
        return OpenedSecrets(Cause.UNKNOWN_DESTINATION)
    record = DestinationRecord(
        row.pipe_id, row.destination, saved.version, "active", to, saved.secrets, saved.credential_for(row.config)
    )
    return open_secrets(record, opener(tuple(settings.PENSTOCK_FERNET_KEYS)))


def _store_result(row: DestinationTest, result: Mapping[str, Any]) -> None:
    DestinationTest.objects.filter(id=row.id, state=DeliveryTestState.SENDING).update(
        state=DeliveryTestState.DONE, **result
    )
    logged = {name: result.get(name, "") for name in ("status", "outcome", "cause")}
    log.info("test request done", tenant=row.tenant_id, pipe=row.pipe_id, test=row.id, **logged)
