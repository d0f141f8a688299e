"""Fetch OAuth2 tokens through the lane's own sender, so that the address guard checks token endpoints, too."""

import logging
import random
from typing import Final

from msgspec import Struct

from dataplane.transmit.destinations.targets import DestinationTarget
from dataplane.transmit.http.sender import MAX_ANSWER_BYTES, HttpRequest, HttpResponse, HttpSender
from dataplane.transmit.policy.tokens import OAuthTokens, TokenError

log = logging.getLogger(__name__)

TIMEOUT_MS: Final = 10_000


class TokenRequest(Struct, eq=False):
    """Token request in flight. `tokens` are those that it was begun for: the record may change meanwhile."""

    target: DestinationTarget
    tokens: OAuthTokens

    def ended(self, answer: HttpResponse, now_s: float) -> None:
        """Store the token, or log why there is none."""
        target = self.target
        try:
            self.tokens.fetched(answer.status, answer.body, now_s, random.random())  # noqa: S311 (jitter)
            target.secret_texts = (*target.secrets.texts, self.tokens.text)
        except TokenError as exc:
            reason = f"{exc}: {answer.message}"[:200] if answer.message and not answer.status else str(exc)
            target.last_status, target.last_reason = answer.status, f"credential: {reason}"
            log.warning("no OAuth token: pipe=%s destination=%s: %s", target.record.pipe, target.record.name, reason)


def begin_fetch(target: DestinationTarget, tokens: OAuthTokens, sender: HttpSender) -> None:
    """Start a token request for this destination."""
    headers, body = tokens.request()
    sender.begin(HttpRequest(TokenRequest(target, tokens), tokens.url, headers, body, TIMEOUT_MS, MAX_ANSWER_BYTES))
