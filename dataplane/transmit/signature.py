"""Standard Webhooks signatures (standardwebhooks.com, specification 1.0) over id, timestamp and body.

A secret says by its prefix how it signs: `whsec_` with HMAC-SHA256 (v1), `whsk_` with ed25519 (v1a).
"""

import base64
from collections.abc import Callable, Sequence
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.hmac import HMAC

SYMMETRIC_PREFIX: Final = "whsec_"
ASYMMETRIC_PREFIX: Final = "whsk_"
SEED_BYTES: Final = 32  # of an ed25519 key; some tools write the public half behind it
Signer = Callable[[bytes], str]  # from what is signed to `v1,<base64>`


def signer(secret: str) -> Signer:
    """What signs with this secret. Raises ValueError if it is none."""
    if secret.startswith(SYMMETRIC_PREFIX):
        return _symmetric(base64.b64decode(secret.removeprefix(SYMMETRIC_PREFIX), validate=True))
    if secret.startswith(ASYMMETRIC_PREFIX):
        key = base64.b64decode(secret.removeprefix(ASYMMETRIC_PREFIX), validate=True)
        if len(key) not in (SEED_BYTES, 2 * SEED_BYTES):
            raise ValueError(f"an ed25519 secret needs 32 or 64 bytes, got {len(key)}")
        return _asymmetric(Ed25519PrivateKey.from_private_bytes(key[:SEED_BYTES]))
    raise ValueError("a signing secret begins with whsec_ or whsk_")


def sign(signers: Sequence[Signer], message_id: str, timestamp_s: int, body: bytes) -> str:
    """The webhook-signature header: one signature for each active secret, newest first."""
    signed = b"%b.%d.%b" % (message_id.encode(), timestamp_s, body)
    return " ".join([one(signed) for one in signers])


def _symmetric(key: bytes) -> Signer:
    keyed = HMAC(key, SHA256())  # a copy of what has taken the key in costs half of a new one

    def one(signed: bytes) -> str:
        mac = keyed.copy()
        mac.update(signed)
        return "v1," + base64.b64encode(mac.finalize()).decode()

    return one


def _asymmetric(key: Ed25519PrivateKey) -> Signer:
    def one(signed: bytes) -> str:
        return "v1a," + base64.b64encode(key.sign(signed)).decode()

    return one
