"""PagerDuty, webhooks of version 3: HMAC-SHA256 of the body, in hex, several signatures in one header.

Source: https://github.com/PagerDuty/developer-docs/blob/main/docs/webhooks/04-Signatures.md. PagerDuty signs no time;
repeats have the same `X-Webhook-Id` (02-Behavior.md there, "At-Least-Once Delivery").
"""

import hmac
from collections.abc import Sequence
from typing import Final

from dataplane.webhooks.preset import JSON, HeaderPlace, Preset
from dataplane.webhooks.request import INVALID, UnverifiedError, WebhookRequest, check_match, read_parts

SIGNATURE: Final = "x-pagerduty-signature"


def verify(request: WebhookRequest, secrets: Sequence[str], _now_s: int) -> None:
    """Check `X-PagerDuty-Signature: v1=<hex>[,v1=<hex>]`. Raises UnverifiedError."""
    (given,) = read_parts(request.signed(SIGNATURE), ",", ("v1",))
    if not given:
        raise UnverifiedError(INVALID, f"needs {SIGNATURE} with at least one signature v1")
    check_match(given, (hmac.new(secret.encode(), request.body, "sha256").hexdigest() for secret in secrets))


PAGERDUTY: Final = Preset(
    name="pagerduty",
    title="PagerDuty",
    verify=verify,
    headers=("x-webhook-id", "x-webhook-subscription", SIGNATURE),
    media_types=(JSON,),
    id=HeaderPlace("x-webhook-id"),
    type="event.event_type",
    time="event.occurred_at",
)
