"""Access tokens of table queries: which look-up table of which tenant a bearer may read, and until when. Pure.

A token is `<claims>.<signature>`, both base64url: the claims as JSON, and their HMAC-SHA256 under a key that is derived
from one of PENSTOCK_FERNET_KEYS, which the management and the data plane share. The derivation separates tokens from
what Fernet does with the same keys. Claims are signed, not encrypted: they hold no secret.
"""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import Struct

MOST_TOKEN_BYTES: Final = 1_024
LIFETIME_S: Final = 900
_PURPOSE: Final = b"penstock: access token of table queries"


class AccessRefusedError(Exception):
    """The token does not permit the request. The text says what is needed."""


class TableAccess(Struct, frozen=True):
    """Claims: the right to read the table `table`, named `name`, of `tenant`, until `until_s` (seconds, epoch)."""

    tenant: str
    table: str
    name: str
    until_s: int


_claims = msgspec.json.Decoder(TableAccess)


def sign_access(keys: Sequence[str], access: TableAccess) -> str:
    """Return a token, signed with the first key. Raises ValueError without a key."""
    if not keys:
        raise ValueError("needs a key to sign access tokens")
    claims = msgspec.json.encode(access)
    return f"{_encoded(claims)}.{_encoded(_signature(keys[0], claims))}"


def read_access(keys: Sequence[str], token: str, now_s: float) -> TableAccess:
    """Return the claims of a token that any of the keys signed. Raises AccessRefusedError."""
    if len(token) > MOST_TOKEN_BYTES:
        raise AccessRefusedError("needs a valid access token")
    claims_text, _, signature_text = token.partition(".")
    try:
        claims, signature = _decoded(claims_text), _decoded(signature_text)
    except (binascii.Error, ValueError) as exc:
        raise AccessRefusedError("needs a valid access token") from exc
    if not any(hmac.compare_digest(_signature(key, claims), signature) for key in keys):
        raise AccessRefusedError("needs a valid access token")
    try:
        access = _claims.decode(claims)
    except msgspec.DecodeError as exc:  # of another release
        raise AccessRefusedError("needs an access token of this release") from exc
    if access.until_s <= now_s:
        raise AccessRefusedError("the access token has expired: request a new one")
    return access


def _signature(key: str, claims: bytes) -> bytes:
    derived = hmac.digest(key.encode(), _PURPOSE, hashlib.sha256)
    return hmac.digest(derived, claims, hashlib.sha256)


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decoded(text: str) -> bytes:
    """Raise ValueError for text that is not base64url. Padding is not part of a token."""
    if not text.isascii() or "=" in text:
        raise ValueError("needs base64url without padding")
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
