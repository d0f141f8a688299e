"""Standard Webhooks signatures (standardwebhooks.com, specification 1.0): HMAC-SHA256 over id, timestamp and body."""

import base64
import hmac
from collections.abc import Sequence
from typing import Final

SECRET_PREFIX: Final = "whsec_"  # noqa: S105 (the prefix of secrets, not one)


def signing_key(secret: str) -> bytes:
    """The key bytes of a `whsec_...` secret. Raises ValueError if it is none."""
    if not secret.startswith(SECRET_PREFIX):
        raise ValueError("a signing secret begins with whsec_")
    return base64.b64decode(secret.removeprefix(SECRET_PREFIX), validate=True)


def sign(keys: Sequence[bytes], message_id: str, timestamp_s: int, body: bytes) -> str:
    """The webhook-signature header: one `v1,<base64>` for each active key, newest first."""
    signed = b"%b.%d.%b" % (message_id.encode(), timestamp_s, body)
    return " ".join("v1," + base64.b64encode(hmac.digest(key, signed, "sha256")).decode() for key in keys)
