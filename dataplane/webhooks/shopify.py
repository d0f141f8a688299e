"""Shopify: HMAC-SHA256 of the body, in base64.

Source: https://shopify.dev/docs/apps/build/webhooks/verify-deliveries. Shopify signs no time, so a copy of a request is
recognised only by its delivery id.
"""

import base64
import hmac
from collections.abc import Sequence
from typing import Final

from dataplane.webhooks.preset import JSON, XML, HeaderPlace, Preset
from dataplane.webhooks.request import Reply, WebhookRequest, check_match

SIGNATURE: Final = "x-shopify-hmac-sha256"


def verify(request: WebhookRequest, secrets: Sequence[str], _now_s: int) -> None:
    """Check `X-Shopify-Hmac-SHA256`. Raises UnverifiedError."""
    given = request.signed(SIGNATURE)
    digests = (hmac.digest(secret.encode(), request.body, "sha256") for secret in secrets)
    check_match([given], (base64.b64encode(digest).decode() for digest in digests))


SHOPIFY: Final = Preset(
    name="shopify",
    title="Shopify",
    verify=verify,
    headers=(
        "x-shopify-topic",
        "x-shopify-shop-domain",
        "x-shopify-api-version",
        "x-shopify-webhook-id",
        "x-shopify-event-id",
        "x-shopify-triggered-at",
        SIGNATURE,
    ),
    media_types=(JSON, *XML),
    id=HeaderPlace("x-shopify-webhook-id"),
    type=HeaderPlace("x-shopify-topic"),
    time=HeaderPlace("x-shopify-triggered-at"),
    reply=Reply(200),
)
