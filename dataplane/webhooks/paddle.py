"""Paddle Billing: HMAC-SHA256 of time and body, in hex, several signatures in one header.

Source: https://developer.paddle.com/webhooks/about/signature-verification. `event_id` is what Paddle names for the
removal of repeats: https://developer.paddle.com/webhooks/about/how-webhooks-work.
"""

from collections.abc import Sequence
from typing import Final

from dataplane.webhooks.preset import JSON, Preset
from dataplane.webhooks.request import Reply, WebhookRequest, check_timed

SIGNATURE: Final = "paddle-signature"


def verify(request: WebhookRequest, secrets: Sequence[str], now_s: int) -> None:
    """Check `Paddle-Signature: ts=<time>;h1=<hex>[;h1=<hex>]`. Raises UnverifiedError."""
    check_timed(request, secrets, now_s, header=SIGNATURE, separator=";", time="ts", scheme="h1", joint=b":")


PADDLE: Final = Preset(
    name="paddle",
    title="Paddle",
    verify=verify,
    headers=(SIGNATURE,),
    media_types=(JSON,),
    id="event_id",
    type="event_type",
    time="occurred_at",
    reply=Reply(200),
)
