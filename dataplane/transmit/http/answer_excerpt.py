"""Excerpt of a response that is kept for display: short, printable, without the destination's secrets. Pure."""

from collections.abc import Iterable
from typing import Final

ATTEMPT_CHARS: Final = 512
DEAD_LETTER_CHARS: Final = 2_048
_MASK: Final = "***"


def answer_excerpt(body: bytes, limit: int, secrets: Iterable[str] = ()) -> str:
    """Return the first `limit` characters of a body; unprintable ones become a dot, echoed secrets become ***.

    Secrets are masked before the text is cut, because half a secret at the end would also be a leak.
    """
    if not body:
        return ""
    text = body.decode("utf-8", "replace")
    for secret in secrets:
        text = text.replace(secret, _MASK)
    return "".join(c if c.isprintable() or c in "\n\t" else "." for c in text[:limit])
