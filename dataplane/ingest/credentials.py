"""The API key of a request, from its Authorization header.

`Bearer` (RFC 6750) is what we show. `Basic` (RFC 7617) is for senders that know nothing but a URL, as most webhooks of
others do: `https://events:<API key>@host/v1/events` makes them send the key as the password; the user's name is theirs.
"""

from base64 import b64decode
from typing import Final

from dataplane.ingest.problems import RefusalError

CHALLENGE: Final = 'Bearer, Basic realm="Penstock", charset="UTF-8"'


def key_of(authorization: str | None) -> str:
    """The key as it came. Raises RefusalError `key-missing` if none did."""
    scheme, _, rest = (authorization or "").partition(" ")
    match scheme.lower():
        case "bearer":
            key = rest.strip()
        case "basic":
            key = _password(rest)
        case _:
            key = ""
    if not key:
        raise RefusalError(
            401, "key-missing", "needs the header Authorization: Bearer <API key>, or Basic with it as the password"
        )
    return key


def _password(encoded: str) -> str:
    """What follows the first colon (RFC 7617, 2); "" if it is no such thing."""
    try:
        return b64decode(encoded.strip(), validate=True).decode().partition(":")[2]
    except ValueError:  # no base64, or no text
        return ""
