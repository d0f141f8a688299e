"""The API key of a request, from its Authorization header.

`Bearer` (RFC 6750) is what the documentation shows. `Basic` (RFC 7617) is for senders that can be given only a URL, as
most third-party webhooks: `https://events:<API key>@host/v1/events` makes them send the key as the password; any user
name will do.
"""

from base64 import b64decode
from typing import Final

from dataplane.ingest.problems import EventRejectedError

CHALLENGE: Final = 'Bearer, Basic realm="Penstock", charset="UTF-8"'


def key_of(authorization: str | None) -> str:
    """Return the API key of an Authorization header. Raises EventRejectedError `key-missing` if there is none."""
    scheme, _, rest = (authorization or "").partition(" ")
    match scheme.lower():
        case "bearer":
            key = rest.strip()
        case "basic":
            key = _password(rest)
        case _:
            key = ""
    if not key:
        raise EventRejectedError(
            401,
            "key-missing",
            "needs the header Authorization: Bearer <API key>, or Basic with the API key as the password",
        )
    return key


def _password(encoded: str) -> str:
    """Return the password of Basic credentials, after the first colon (RFC 7617, 2); "" if they are malformed."""
    try:
        return b64decode(encoded.strip(), validate=True).decode().partition(":")[2]
    except ValueError:  # not base64, or not UTF-8
        return ""
