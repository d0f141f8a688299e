"""CloudEvents: a bearer token, and the handshake by which a receiver agrees to get events.

Source: https://github.com/cloudevents/spec/blob/main/cloudevents/http-webhook.md, sections 3 (authorization) and 4
(abuse protection).
"""

import re
from collections.abc import Sequence
from typing import Final

from dataplane.webhooks.preset import JSON, HeaderPlace, Preset
from dataplane.webhooks.request import MISSING, Reply, UnverifiedError, WebhookRequest, check_match

_ORIGIN: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.:-]{0,252}[A-Za-z0-9])?")


def verify(request: WebhookRequest, secrets: Sequence[str], _now_s: int) -> None:
    """Check `Authorization: Bearer <secret>`; without a secret every request passes. Raises UnverifiedError."""
    if not secrets:
        return
    scheme, _, token = request.signed("authorization").partition(" ")
    if scheme.lower() != "bearer":
        raise UnverifiedError(MISSING, "needs the header authorization with a bearer token")
    check_match([token.strip()], secrets)


def options(request: WebhookRequest) -> Reply | None:
    """Agree to get events from the origin that asks, at any rate; None for any other request."""
    origin = request.first("webhook-request-origin")
    if not _ORIGIN.fullmatch(origin):
        return None
    allowed = (("webhook-allowed-origin", origin), ("webhook-allowed-rate", "*"), ("allow", "POST"))
    return Reply(200, headers=allowed)


CLOUDEVENTS: Final = Preset(
    name="cloudevents",
    title="CloudEvents",
    verify=verify,
    options=options,
    headers=(),
    media_types=(JSON, "application/cloudevents+json", "application/cloudevents-batch+json"),
    id=HeaderPlace("ce-id"),
    type=HeaderPlace("ce-type"),
    needs_secret=False,
)
