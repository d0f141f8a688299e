"""Square: HMAC-SHA256 of the URL and the body, in base64.

Source: https://developer.squareup.com/docs/webhooks/step3validate. The older `x-square-signature` (SHA-1) is never
looked at. Square signs no time; repeats have the same `event_id`, which is signed.
"""

import base64
import hmac
from collections.abc import Sequence
from typing import Final

from dataplane.webhooks.preset import JSON, Preset
from dataplane.webhooks.request import WebhookRequest, check_match

SIGNATURE: Final = "x-square-hmacsha256-signature"


def verify(request: WebhookRequest, secrets: Sequence[str], _now_s: int) -> None:
    """Check `x-square-hmacsha256-signature`. Raises UnverifiedError."""
    given = request.signed(SIGNATURE)
    content = request.url.encode("utf-8", "replace") + request.body
    digests = (hmac.digest(secret.encode(), content, "sha256") for secret in secrets)
    check_match([given], (base64.b64encode(digest).decode() for digest in digests))


SQUARE: Final = Preset(
    name="square",
    title="Square",
    verify=verify,
    headers=(SIGNATURE, "square-environment", "square-retry-number", "square-retry-reason"),
    media_types=(JSON,),
    id="event_id",
    type="type",
    time="created_at",
)
