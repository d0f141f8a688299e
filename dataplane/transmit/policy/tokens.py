"""OAuth2 access tokens by client credentials (RFC 6749, 4.4), renewed before they expire. Pure: time is an argument.

Times are seconds of a monotonic clock.
"""

import base64
from typing import Any, Final
from urllib.parse import quote_plus, urlencode

import msgspec

from dataplane.spec import OAuth2
from dataplane.stages.decoding import decode_json

DEFAULT_LIFE_S: Final = 300.0  # if the endpoint sends no expires_in
MAX_LIFE_S: Final = 86_400.0
RENEW_S: Final = 60.0  # before expiry, or a fifth of the token's life if that is less
EXPIRY_MARGIN_S: Final = 5.0  # before expiry a token is no longer used: requests take time
FRESH_S: Final = 60.0  # if a token younger than this is refused, a new one will not help
FIRST_PAUSE_S: Final = 1.0
PAUSE_CAP_S: Final = 60.0


class TokenError(Exception):
    """The endpoint's response holds no usable token. The text gives the reason and quotes nothing of the response."""


class OAuthTokens:
    """Access token of one destination, and the schedule of its renewal."""

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
        """Return True if there is a token that will not expire within EXPIRY_MARGIN_S."""
        return bool(self.header) and now_s < self._ends_s - EXPIRY_MARGIN_S

    def due(self, now_s: float) -> bool:
        """Return True if a token should be fetched now; a failure delays the next fetch."""
        return not self.fetching and now_s >= self._not_before_s and (not self.header or now_s >= self._renew_s)

    def wait_s(self, now_s: float) -> float:
        """Return the seconds until the next fetch is allowed."""
        return max(0.0, self._not_before_s - now_s)

    def request(self) -> tuple[list[str], bytes]:
        """Return headers and body of a token request, and count it as begun."""
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
        """Store the token of a response. `chance` in 0..1 spreads the next fetch after a failure.

        Raises TokenError if the answer holds no usable token; the next fetch is then delayed, longer after each
        failure.
        """
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
        self._renew_s = self._ends_s - max(EXPIRY_MARGIN_S, min(RENEW_S, life_s / 5))

    def refused(self, now_s: float) -> bool:
        """Drop a token that the destination refused; return False if it is so new that another one would not help."""
        if not self.header or now_s - self._fetched_s < FRESH_S:
            return False
        self.header = ""
        return True


def read_token(status: int, body: bytes) -> tuple[str, float]:
    """Return the token and its life in seconds. Raises TokenError if the response holds no usable token."""
    if status != 200:
        raise TokenError(f"the token endpoint returned {status}" if status else "the token endpoint did not respond")
    try:
        answer: Any = decode_json(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise TokenError("the token endpoint's response is not JSON") from exc
    token = answer.get("access_token") if isinstance(answer, dict) else None
    if not isinstance(token, str) or not token or not all("!" <= c <= "~" for c in token):
        raise TokenError("the token endpoint's response has no access_token that can be sent")
    if str(answer.get("token_type", "bearer")).lower() != "bearer":
        raise TokenError("the token endpoint's token_type is not bearer")
    life_s = answer.get("expires_in", DEFAULT_LIFE_S)
    if isinstance(life_s, str) and life_s.isascii() and life_s.isdigit():
        life_s = float(life_s[:9])
    if isinstance(life_s, bool) or not isinstance(life_s, (int, float)) or not life_s > 0:
        life_s = DEFAULT_LIFE_S
    return token, float(min(life_s, MAX_LIFE_S))  # min before float: an int of 400 digits overflows a double
