"""What of an answer is kept to be shown: a little text, printable, and none of the destination's secrets. Pure."""

from collections.abc import Iterable
from typing import Final

ATTEMPT_CHARS: Final = 512
DEAD_LETTER_CHARS: Final = 2_048
_MASK: Final = "***"


def shown(body: bytes, limit: int, secrets: Iterable[str] = ()) -> str:
    """The first `limit` characters; what is not printable becomes a dot, a secret that was echoed becomes ***.

    Masked before it is cut: half a secret at the end is one, too.
    """
    if not body:
        return ""
    text = body.decode("utf-8", "replace")
    for secret in secrets:
        text = text.replace(secret, _MASK)
    return "".join(c if c.isprintable() or c in "\n\t" else "." for c in text[:limit])
