"""Standard Webhooks: HMAC-SHA256 of id, time and body, in base64.

Source: https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md. Senders that use
Svix may name the headers `svix-...`; the scheme is the same. Asymmetric signatures (`v1a`) are not supported.
"""

import base64
import binascii
import hmac
from collections.abc import Sequence
from typing import Final

from dataplane.webhooks.preset import JSON, HeaderPlace, Preset
from dataplane.webhooks.request import INVALID, MAX_PARTS, UnverifiedError, WebhookRequest, check_match, check_time

PREFIX: Final = "whsec_"
_STANDARD: Final = ("webhook-id", "webhook-timestamp", "webhook-signature")
_SVIX: Final = ("svix-id", "svix-timestamp", "svix-signature")


def verify(request: WebhookRequest, secrets: Sequence[str], now_s: int) -> None:
    """Check `webhook-signature: v1,<base64>[ v1,<base64>]`. Raises UnverifiedError."""
    family = "svix" if _SVIX[0] in request.headers and request.headers.keys().isdisjoint(_STANDARD) else "webhook"
    id_, time, signature = (request.signed(f"{family}-{part}") for part in ("id", "timestamp", "signature"))
    parts = signature.split(" ", MAX_PARTS)
    given = [part[3:] for part in parts if part.startswith("v1,")]
    if len(parts) > MAX_PARTS or not given:
        raise UnverifiedError(INVALID, f"needs {family}-signature with at least one signature v1")
    content = f"{id_}.{check_time(time, now_s)}.".encode() + request.body
    digests = (hmac.digest(_key(secret), content, "sha256") for secret in secrets)
    check_match(given, (base64.b64encode(digest).decode() for digest in digests))


def check_secret(secret: str) -> None:
    """Raise ValueError unless the secret is `whsec_` and 24 to 64 bytes in base64; the prefix may be missing."""
    try:
        size = len(_key(secret))
    except (binascii.Error, ValueError):
        size = 0
    if not 24 <= size <= 64:
        raise ValueError("needs whsec_ and 24 to 64 bytes in base64, as the sender shows it")


def _key(secret: str) -> bytes:
    return base64.b64decode(secret.removeprefix(PREFIX), validate=True)


STANDARD_WEBHOOKS: Final = Preset(
    name="standard-webhooks",
    title="Standard Webhooks",
    verify=verify,
    check_secret=check_secret,
    headers=(*_STANDARD, *_SVIX),
    media_types=(JSON,),
    id=HeaderPlace("webhook-id", "svix-id"),
    type="type",
    time=HeaderPlace("webhook-timestamp", "svix-timestamp"),
)
