"""Stripe: HMAC-SHA256 of time and body, in hex, several signatures in one header.

Source: https://docs.stripe.com/webhooks/signature. Only `v1` counts: the other schemes are of test events, and would
be a way to a weaker one.
"""

import hmac
from collections.abc import Sequence
from typing import Final

from dataplane.webhooks.preset import JSON, Preset
from dataplane.webhooks.request import INVALID, UnverifiedError, WebhookRequest, check_match, check_time, read_parts

SIGNATURE: Final = "stripe-signature"


def verify(request: WebhookRequest, secrets: Sequence[str], now_s: int) -> None:
    """Check `Stripe-Signature: t=<time>,v1=<hex>[,v1=<hex>]`. Raises UnverifiedError."""
    times, given = read_parts(request.signed(SIGNATURE), ",", ("t", "v1"))
    if len(times) != 1 or not given:
        raise UnverifiedError(INVALID, f"needs {SIGNATURE} with one time and at least one signature v1")
    content = check_time(times[0], now_s).encode() + b"." + request.body
    check_match(given, (hmac.new(secret.encode(), content, "sha256").hexdigest() for secret in secrets))


STRIPE: Final = Preset(
    name="stripe",
    title="Stripe",
    verify=verify,
    headers=(SIGNATURE,),
    media_types=(JSON,),
    id="id",
    type="type",
    time="created",
)
