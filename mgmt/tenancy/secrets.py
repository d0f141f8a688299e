"""Secrets and salts: stored as Fernet tokens that are bound to one location (dataplane.tables.sealed), shown once."""

import base64
import hashlib
import secrets

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from dataplane.tables.sealed import bind, unbind

_SECRET_BYTES = 32  # Standard Webhooks: 24 to 64
_LINK_BYTES = 24


def new_signing_secret() -> str:
    """Return a new Standard Webhooks secret: `whsec_` and 32 random bytes in base64."""
    return "whsec_" + base64.b64encode(secrets.token_bytes(_SECRET_BYTES)).decode()


def new_mask_salt() -> str:
    """Return a new salt: 32 random bytes in base64."""
    return base64.b64encode(secrets.token_bytes(_SECRET_BYTES)).decode()


def new_link_token() -> str:
    """Return a new token of a link: 24 random bytes in base64url. Rows have its digest only."""
    return secrets.token_urlsafe(_LINK_BYTES)


def link_token_digest(token: str) -> str:
    """Return the SHA-256 of a link's token, hex."""
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


def encrypt(plaintext: str, place: str) -> str:
    """Encrypt with the first of PENSTOCK_FERNET_KEYS, bound to `place`. Raises ValueError for more than one line."""
    return _fernet().encrypt(bind(plaintext, place).encode()).decode()


def decrypt(token: str, place: str) -> str:
    """Decrypt a token of `encrypt` with any of the keys.

    Raises ImproperlyConfigured if no key fits, ValueError if the token is bound to another location.
    """
    try:
        return unbind(_fernet().decrypt(token.encode()).decode(), place)
    except InvalidToken as exc:
        raise ImproperlyConfigured(
            "No key in PENSTOCK_FERNET_KEYS decrypts a stored secret. Restore the key that it was encrypted with."
        ) from exc


def reencrypt(token: str, place: str) -> str:
    """Encrypt the secret of a token again with the first key. Raises as `decrypt`."""
    return encrypt(decrypt(token, place), place)


def _fernet() -> MultiFernet:
    keys = settings.PENSTOCK_FERNET_KEYS
    if not keys:
        raise ImproperlyConfigured(
            "PENSTOCK_FERNET_KEYS is not set: signing secrets cannot be stored. "
            "Give it one or more comma-separated Fernet keys; `make up` writes some to var/secrets.env."
        )
    return MultiFernet([Fernet(key) for key in keys])
