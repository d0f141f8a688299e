"""Paddle Billing: HMAC-SHA256 of time and body, in hex, several signatures in one header.

Source: https://developer.paddle.com/webhooks/about/signature-verification. `event_id` is what Paddle names for the
removal of repeats: https://developer.paddle.com/webhooks/about/how-webhooks-work.
"""

import hmac
from collections.abc import Sequence
from typing import Final

from dataplane.webhooks.preset import JSON, Preset
from dataplane.webhooks.request import (
    INVALID,
    Reply,
    UnverifiedError,
    WebhookRequest,
    check_match,
    check_time,
    read_parts,
)

SIGNATURE: Final = "paddle-signature"


def verify(request: WebhookRequest, secrets: Sequence[str], now_s: int) -> None:
    """Check `Paddle-Signature: ts=<time>;h1=<hex>[;h1=<hex>]`. Raises UnverifiedError."""
    times, given = read_parts(request.signed(SIGNATURE), ";", ("ts", "h1"))
    if len(times) != 1 or not given:
        raise UnverifiedError(INVALID, f"needs {SIGNATURE} with one time and at least one signature h1")
    content = check_time(times[0], now_s).encode() + b":" + request.body
    check_match(given, (hmac.new(secret.encode(), content, "sha256").hexdigest() for secret in secrets))


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
