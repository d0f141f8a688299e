"""Standard Webhooks signatures (standardwebhooks.com, specification 1.0) over id, timestamp and body.

The prefix of a secret names its algorithm: `whsec_` for HMAC-SHA256 (v1), `whsk_` for ed25519 (v1a).
"""

import base64
from collections.abc import Callable, Sequence
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.hmac import HMAC

SYMMETRIC_PREFIX: Final = "whsec_"
ASYMMETRIC_PREFIX: Final = "whsk_"
SEED_BYTES: Final = 32  # length of an ed25519 seed; some tools append the public half
Signer = Callable[[bytes], str]  # from the signed content to `v1,<base64>` or `v1a,<base64>`


def signer(secret: str) -> Signer:
    """Return a function that signs with this secret. Raises ValueError if the secret is malformed."""
    if secret.startswith(SYMMETRIC_PREFIX):
        return _symmetric(base64.b64decode(secret.removeprefix(SYMMETRIC_PREFIX), validate=True))
    if secret.startswith(ASYMMETRIC_PREFIX):
        key = base64.b64decode(secret.removeprefix(ASYMMETRIC_PREFIX), validate=True)
        if len(key) not in (SEED_BYTES, 2 * SEED_BYTES):
            raise ValueError(f"signing secret: an ed25519 key needs 32 or 64 bytes, got {len(key)}")
        return _asymmetric(Ed25519PrivateKey.from_private_bytes(key[:SEED_BYTES]))
    raise ValueError("signing secret: needs the prefix whsec_ or whsk_")


def sign(signers: Sequence[Signer], message_id: str, timestamp_s: int, body: bytes) -> str:
    """Return the value of the webhook-signature header: one signature per signer, in their order (newest first)."""
    signed = b"%b.%d.%b" % (message_id.encode(), timestamp_s, body)
    return " ".join([sign_one(signed) for sign_one in signers])


def _symmetric(key: bytes) -> Signer:
    keyed = HMAC(key, SHA256())  # copying a keyed HMAC costs half as much as creating one

    def one(signed: bytes) -> str:
        mac = keyed.copy()
        mac.update(signed)
        return "v1," + base64.b64encode(mac.finalize()).decode()

    return one


def _asymmetric(key: Ed25519PrivateKey) -> Signer:
    def one(signed: bytes) -> str:
        return "v1a," + base64.b64encode(key.sign(signed)).decode()

    return one
