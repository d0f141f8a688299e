"""Binding of a secret to its row and field: the plaintext of its Fernet token contains their name. Pure.

A Fernet token has no associated data, so one row's token copied to another row would decrypt there as well. The token
therefore contains its place, and the reader states where it found the token: `<owner>/<name>/<field>`, the owner a pipe
or a tenant. A pipe never changes its tenant, so its id identifies the tenant too.
"""

from collections.abc import Callable
from typing import Final

from cryptography.fernet import Fernet, MultiFernet

_END: Final = "\n"
Opener = Callable[[str], str]


def signing_place(pipe: str, destination: str) -> str:
    """Return the place of a destination's signing secrets."""
    return f"{pipe}/{destination}/secret"


def webhook_place(pipe: str, source: str) -> str:
    """Return the place of the secrets with which a source's sender signs."""
    return f"{pipe}/{source}/webhook"


def credential_place(pipe: str, destination: str) -> str:
    """Return the place of the secret of a destination's auth."""
    return f"{pipe}/{destination}/credential"


def salt_place(tenant: str) -> str:
    """Return the place of the salt of a tenant's masks."""
    return f"{tenant}/masks/salt"


def bind(secret: str, place: str) -> str:
    """Return the text to encrypt. Raises ValueError for a newline in the secret; JSON escapes newlines."""
    if _END in secret or _END in place:
        raise ValueError("needs a secret and a place without newlines")
    return f"{place}{_END}{secret}"


def unbind(text: str, place: str) -> str:
    """Return the secret in a decrypted text. Raises ValueError if it belongs to another place.

    A text without a place was written before secrets were bound: it is accepted until the next rotation.
    """
    found, end, secret = text.partition(_END)
    if not end:
        return text
    if found != place:
        raise ValueError("the secret belongs to another row or field")
    return secret


def opener(fernet_keys: tuple[str, ...]) -> Opener:
    """Return a function that decrypts Fernet tokens with any of the keys; it raises ValueError or InvalidToken."""
    if not fernet_keys:
        return _no_keys
    fernet = MultiFernet([Fernet(key) for key in fernet_keys])
    return lambda token: fernet.decrypt(token).decode()


def _no_keys(_token: str) -> str:
    raise ValueError("PENSTOCK_FERNET_KEYS: needs at least one key, got none")
