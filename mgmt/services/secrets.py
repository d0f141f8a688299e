"""Signing secrets and salts: made here, kept as Fernet tokens; signing secrets are opened to be shown once."""

import base64
import secrets

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

_SECRET_BYTES = 32  # Standard Webhooks: 24 to 64


def new_signing_secret() -> str:
    """A fresh Standard Webhooks secret: `whsec_` and base64."""
    return "whsec_" + base64.b64encode(secrets.token_bytes(_SECRET_BYTES)).decode()


def new_mask_salt() -> str:
    """A fresh salt, base64."""
    return base64.b64encode(secrets.token_bytes(_SECRET_BYTES)).decode()


def encrypt(plaintext: str) -> str:
    """A Fernet token under the first of PENSTOCK_FERNET_KEYS."""
    return _fernet().encrypt(plaintext.encode()).decode()


def decrypt(token: str) -> str:
    """What `encrypt` was given, under any of the keys. Raises ImproperlyConfigured if none fits."""
    try:
        return _fernet().decrypt(token.encode()).decode()
    except InvalidToken as exc:
        raise ImproperlyConfigured(
            "No key in PENSTOCK_FERNET_KEYS opens a stored secret. Put the key back that it was written with."
        ) from exc


def _fernet() -> MultiFernet:
    keys = settings.PENSTOCK_FERNET_KEYS
    if not keys:
        raise ImproperlyConfigured(
            "PENSTOCK_FERNET_KEYS is not set: signing secrets cannot be stored. "
            "Give it one or more comma-separated Fernet keys; `make up` writes some to var/secrets.env."
        )
    return MultiFernet([Fernet(key) for key in keys])
