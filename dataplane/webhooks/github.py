"""GitHub: HMAC-SHA256 of the body, in hex.

Source: https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries. The older `X-Hub-Signature`
(SHA-1) is never looked at, so that nobody can choose the weaker algorithm.
"""

import hmac
from collections.abc import Sequence
from typing import Final

from dataplane.webhooks.preset import FORM, JSON, HeaderPlace, Preset
from dataplane.webhooks.request import WebhookRequest, check_match

SIGNATURE: Final = "x-hub-signature-256"


def verify(request: WebhookRequest, secrets: Sequence[str], _now_s: int) -> None:
    """Check `X-Hub-Signature-256: sha256=<hex>`. Raises UnverifiedError."""
    given = request.signed(SIGNATURE)
    check_match(
        [given], ("sha256=" + hmac.new(secret.encode(), request.body, "sha256").hexdigest() for secret in secrets)
    )


GITHUB: Final = Preset(
    name="github",
    title="GitHub",
    verify=verify,
    headers=("x-github-event", "x-github-delivery", "x-github-hook-id", SIGNATURE),
    media_types=(JSON, FORM),
    id=HeaderPlace("x-github-delivery"),
    type=HeaderPlace("x-github-event"),
)
