"""A sender's request as presets see it, and what they answer."""

import hmac
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct

MISSING: Final = "signature-missing"
INVALID: Final = "signature-invalid"
STALE: Final = "signature-stale"
TOLERANCE_S: Final = 300  # between a signed time and ours: the default of Stripe, Slack and Standard Webhooks
MAX_TIME_DIGITS: Final = 12
MAX_PARTS: Final = 20
_CHARSET: Final = re.compile(r';\s*charset\s*=\s*"?([^\s";]+)', re.IGNORECASE)


class UnverifiedError(Exception):
    """The request is not proven to come from its sender. `code`: MISSING, INVALID or STALE."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail


class WebhookRequest(Struct, frozen=True):
    """One request, before its body is parsed.

    headers: values by lower-case name, in the order of the request
    url:     as the sender addressed it, with the query
    """

    headers: Mapping[str, Sequence[str]]
    body: bytes
    url: str = ""

    def first(self, name: str) -> str:
        """Return the first value of a header; "" if there is none."""
        return next(iter(self.headers.get(name, ())), "")

    def signed(self, name: str) -> str:
        """Return the only value of a header that a signature needs. Raises UnverifiedError."""
        values = self.headers.get(name, ())
        if not values or not values[0]:
            raise UnverifiedError(MISSING, f"needs the header {name}")
        if len(values) > 1:
            raise UnverifiedError(INVALID, f"needs the header {name} once, got {len(values)}")
        return values[0]

    @property
    def media_type(self) -> str:
        """Media type of the body, without parameters, in lower case."""
        return self.first("content-type").partition(";")[0].strip().lower()

    @property
    def charset(self) -> str:
        """Parameter `charset` of the media type, in lower case; "" if there is none."""
        found = _CHARSET.search(self.first("content-type"))
        return found[1].lower() if found else ""


class Reply(Struct, frozen=True):
    """Response that a sender expects. An empty media type: no body."""

    status: int
    media_type: str = ""
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()


def check_time(text: str, now_s: int) -> str:
    """Return a signed Unix time as it was sent. Raises UnverifiedError if it is not within TOLERANCE_S of `now_s`."""
    if not (text.isascii() and text.isdecimal() and len(text) <= MAX_TIME_DIGITS):
        raise UnverifiedError(INVALID, "needs a signed Unix time in seconds")
    check_age(int(text), now_s)
    return text


def check_age(signed_s: int, now_s: int, tolerance_s: int = TOLERANCE_S) -> None:
    """Raise UnverifiedError if a signed Unix time is not within `tolerance_s` of `now_s`."""
    if abs(now_s - signed_s) > tolerance_s:
        raise UnverifiedError(STALE, f"needs a signed time within {tolerance_s} s of ours; was it sent again?")


def read_parts(header: str, separator: str, names: Sequence[str]) -> Sequence[list[str]]:
    """Return the values of each of these names in a header of parts such as `t=1,v1=ab,v1=cd`; others are left out.

    Raises UnverifiedError if the header has too many parts.
    """
    parts = header.split(separator, MAX_PARTS)
    if len(parts) > MAX_PARTS:
        raise UnverifiedError(INVALID, f"needs at most {MAX_PARTS} parts in the header with the signature")
    named = [part.strip().partition("=")[::2] for part in parts]
    return [[value for name, value in named if name == wanted] for wanted in names]


def check_timed(
    request: WebhookRequest,
    secrets: Sequence[str],
    now_s: int,
    *,
    header: str,
    separator: str,
    time: str,
    scheme: str,
    joint: bytes,
) -> None:
    """Check a header such as `t=<time>,v1=<hex>[,v1=<hex>]`: HMAC-SHA256 of the time, `joint` and the body.

    Raises UnverifiedError.

    time, scheme: names of the time and of the signatures
    """
    times, given = read_parts(request.signed(header), separator, (time, scheme))
    if len(times) != 1 or not given:
        raise UnverifiedError(INVALID, f"needs {header} with one time and at least one signature {scheme}")
    content = check_time(times[0], now_s).encode() + joint + request.body
    check_match(given, (hmac.new(secret.encode(), content, "sha256").hexdigest() for secret in secrets))


def check_match(given: Iterable[str], expected: Iterable[str]) -> None:
    """Raise UnverifiedError unless one given signature is one of the expected ones; the time reveals neither."""
    candidates = [text.encode("utf-8", "replace") for text in given]
    found = False
    for one in expected:
        for text in candidates:
            found |= hmac.compare_digest(text, one.encode())
    if not found:
        raise UnverifiedError(INVALID, "the signature fits neither the body nor the secret of this source")
