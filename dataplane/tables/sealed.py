"""What a secret's ciphertext holds beside the secret: the place it belongs to. Pure.

A Fernet token names nobody, so one row's token in another row would open there as well. The place stands inside the
token, and who opens it says where it was found: `<owner>/<name>/<field>`, the owner a pipe or a tenant. A pipe belongs
to one tenant for good, so its id stands for the tenant's too.
"""

from typing import Final

_END: Final = "\n"


def signing_place(pipe: str, destination: str) -> str:
    """Where a destination's signing secrets lie."""
    return f"{pipe}/{destination}/secret"


def credential_place(pipe: str, destination: str) -> str:
    """Where the secret of a destination's auth lies."""
    return f"{pipe}/{destination}/credential"


def salt_place(tenant: str) -> str:
    """Where the salt of a tenant's masks lies."""
    return f"{tenant}/masks/salt"


def bind(secret: str, place: str) -> str:
    """The text to encrypt. Raises ValueError if the secret has a line's end in it: JSON writes them as `\\n`."""
    if _END in secret or _END in place:
        raise ValueError("needs a secret and a place of one line")
    return f"{place}{_END}{secret}"


def unbind(text: str, place: str) -> str:
    """The secret in a decrypted text. Raises ValueError if it belongs to another place.

    A text without a place was written before secrets were bound: it is taken as it is until the next rotation.
    """
    found, end, secret = text.partition(_END)
    if not end:
        return text
    if found != place:
        raise ValueError("a secret of another place lies here")
    return secret
