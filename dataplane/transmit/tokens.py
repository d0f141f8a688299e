"""OAuth2 access tokens by client credentials (RFC 6749, 4.4): kept, renewed before they end. Pure: time is an argument.

Times are seconds of a clock that never goes back.
"""

import base64
from typing import Any, Final
from urllib.parse import quote_plus, urlencode

import msgspec

from dataplane.spec import OAuth2
from dataplane.stages.decoding import decode_json

DEFAULT_LIFE_S: Final = 300.0  # where the endpoint does not say
MAX_LIFE_S: Final = 86_400.0
RENEW_S: Final = 60.0  # before the end, or a fifth of its life if that is less
UNSURE_S: Final = 5.0  # before the end it is not used any more: requests take time
FRESH_S: Final = 60.0  # a token younger than this that is refused will not be mended by another
FIRST_PAUSE_S: Final = 1.0
PAUSE_CAP_S: Final = 60.0


class TokenError(Exception):
    """The endpoint's answer holds no token that can be used. The text says why, and carries none of it."""


class Tokens:
    """One destination's access token."""

    def __init__(self, auth: OAuth2, client_secret: str) -> None:
        self.url = auth.token_url
        self.header = ""
        self.text = ""
        self.fetching = False
        self._auth = auth
        self._client_secret = client_secret
        self._fetched_s = self._ends_s = self._renew_s = self._not_before_s = 0.0
        self._failures = 0

    def usable(self, now_s: float) -> bool:
        """Whether there is a token to send with."""
        return bool(self.header) and now_s < self._ends_s - UNSURE_S

    def due(self, now_s: float) -> bool:
        """Whether to fetch one now; after a failure not at once."""
        return not self.fetching and now_s >= self._not_before_s and (not self.header or now_s >= self._renew_s)

    def wait_s(self, now_s: float) -> float:
        """How long the next fetch is away."""
        return max(0.0, self._not_before_s - now_s)

    def request(self) -> tuple[list[str], bytes]:
        """Headers and body of a fetch, which has then begun."""
        self.fetching = True
        pair = f"{quote_plus(self._auth.client_id)}:{quote_plus(self._client_secret)}"
        fields = {"grant_type": "client_credentials"} | ({"scope": self._auth.scope} if self._auth.scope else {})
        headers = [
            f"Authorization: Basic {base64.b64encode(pair.encode()).decode()}",
            "Content-Type: application/x-www-form-urlencoded",
            "Accept: application/json",
        ]
        return headers, urlencode(fields).encode()

    def fetched(self, status: int, body: bytes, now_s: float, chance: float) -> None:
        """A fetch ended. Raises TokenError if it brought none; the next one is put off (`chance` in 0..1)."""
        self.fetching = False
        try:
            self.text, life_s = read_token(status, body)
        except TokenError:
            self._failures += 1
            pause_s = min(PAUSE_CAP_S, FIRST_PAUSE_S * 2.0 ** min(self._failures - 1, 10))
            self._not_before_s = now_s + pause_s * (1 - chance / 2)
            raise
        self._failures = 0
        self.header = f"Authorization: Bearer {self.text}"
        self._fetched_s, self._ends_s = now_s, now_s + life_s
        self._renew_s = self._ends_s - max(UNSURE_S, min(RENEW_S, life_s / 5))

    def refused(self, now_s: float) -> bool:
        """The destination refuses the token. Whether another one may help; this one is then dropped."""
        if not self.header or now_s - self._fetched_s < FRESH_S:
            return False
        self.header = ""
        return True


def read_token(status: int, body: bytes) -> tuple[str, float]:
    """Token and life in seconds. Raises TokenError."""
    if status != 200:
        raise TokenError(f"the token endpoint answered {status}" if status else "the token endpoint gave no answer")
    try:
        answer: Any = decode_json(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise TokenError("the token endpoint's answer is not JSON") from exc
    token = answer.get("access_token") if isinstance(answer, dict) else None
    if not isinstance(token, str) or not token or not all("!" <= c <= "~" for c in token):
        raise TokenError("the token endpoint's answer has no access_token that can be sent")
    if str(answer.get("token_type", "bearer")).lower() != "bearer":
        raise TokenError("the token endpoint gives tokens that are no bearer tokens")
    life_s = answer.get("expires_in", DEFAULT_LIFE_S)
    if isinstance(life_s, str) and life_s.isascii() and life_s.isdigit():
        life_s = float(life_s[:9])
    if isinstance(life_s, bool) or not isinstance(life_s, (int, float)) or not life_s > 0:
        life_s = DEFAULT_LIFE_S
    return token, float(min(life_s, MAX_LIFE_S))  # in this order: no double holds a number of 400 digits
