"""Secrets and salts: kept as Fernet tokens that name their place (dataplane.tables.sealed), shown at most once."""

import base64
import secrets

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from dataplane.tables.sealed import bind, unbind

_SECRET_BYTES = 32  # Standard Webhooks: 24 to 64


def new_signing_secret() -> str:
    """A fresh Standard Webhooks secret: `whsec_` and base64."""
    return "whsec_" + base64.b64encode(secrets.token_bytes(_SECRET_BYTES)).decode()


def new_mask_salt() -> str:
    """A fresh salt, base64."""
    return base64.b64encode(secrets.token_bytes(_SECRET_BYTES)).decode()


def encrypt(plaintext: str, place: str) -> str:
    """A Fernet token under the first of PENSTOCK_FERNET_KEYS, for one place. Raises ValueError for more than a line."""
    return _fernet().encrypt(bind(plaintext, place).encode()).decode()


def decrypt(token: str, place: str) -> str:
    """What `encrypt` was given, under any of the keys.

    Raises ImproperlyConfigured if no key fits, ValueError if the token was made for another place.
    """
    try:
        return unbind(_fernet().decrypt(token.encode()).decode(), place)
    except InvalidToken as exc:
        raise ImproperlyConfigured(
            "No key in PENSTOCK_FERNET_KEYS opens a stored secret. Put the key back that it was written with."
        ) from exc


def encrypt_anew(token: str, place: str) -> str:
    """The same secret under the first key, bound to its place. Raises as `decrypt`."""
    return encrypt(decrypt(token, place), place)


def _fernet() -> MultiFernet:
    keys = settings.PENSTOCK_FERNET_KEYS
    if not keys:
        raise ImproperlyConfigured(
            "PENSTOCK_FERNET_KEYS is not set: signing secrets cannot be stored. "
            "Give it one or more comma-separated Fernet keys; `make up` writes some to var/secrets.env."
        )
    return MultiFernet([Fernet(key) for key in keys])
