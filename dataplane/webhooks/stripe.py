"""Stripe: HMAC-SHA256 of time and body, in hex, several signatures in one header.

Source: https://docs.stripe.com/webhooks/signature. Only `v1` counts: the other schemes are of test events, and would
be a way to a weaker one.
"""

from collections.abc import Sequence
from typing import Final

from dataplane.webhooks.preset import JSON, Preset
from dataplane.webhooks.request import WebhookRequest, check_timed

SIGNATURE: Final = "stripe-signature"


def verify(request: WebhookRequest, secrets: Sequence[str], now_s: int) -> None:
    """Check `Stripe-Signature: t=<time>,v1=<hex>[,v1=<hex>]`. Raises UnverifiedError."""
    check_timed(request, secrets, now_s, header=SIGNATURE, separator=",", time="t", scheme="v1", joint=b".")


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
