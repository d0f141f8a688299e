"""API tokens as text: `pst_`, 160 random bits and a checksum, like the keys to sources."""

import secrets
from typing import Final

from dataplane.spec.keys import RANDOM_BYTES, key_is_well_formed, key_text

PREFIX: Final = "pst_"


def new_token() -> str:
    """Return a new token."""
    return key_text(secrets.token_bytes(RANDOM_BYTES), PREFIX)


def is_well_formed(token: str) -> bool:
    """Return True if the text has the format of a token and a correct checksum."""
    return key_is_well_formed(token, PREFIX)
