"""Status and fingerprint of a response: what makes two failures alike. Pure."""

import hashlib
import re
from typing import Final

READ_CHARS: Final = 500  # a page of HTML says no more in its rest
DIGEST_CHARS: Final = 12
# Ids, numbers and times differ from message to message; words and punctuation are what the failures have in common.
_VARIABLE: Final = re.compile(r"[\w.:+-]*[0-9][\w.:+-]*")
_BLANK: Final = re.compile(r"\s+")


def status_of(answer: str) -> int:
    """Return the HTTP status at the beginning of a dead letter's response; 0 without a response."""
    number = answer.partition("\n")[0]
    return int(number) if re.fullmatch(r"[1-5][0-9]{2}", number) else 0


def fingerprint_of(answer: str) -> str:
    """Return the same text for responses that differ only in ids, numbers, times and spaces; "" without a body."""
    body = answer.partition("\n")[2] if status_of(answer) else ""
    plain = _BLANK.sub(" ", _VARIABLE.sub("#", body[:READ_CHARS])).strip().lower()
    return hashlib.sha256(plain.encode()).hexdigest()[:DIGEST_CHARS] if plain else ""
