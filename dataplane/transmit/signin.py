"""Fetches OAuth2 tokens through the lane's own sender, so that the address guard sees token endpoints, too."""

import logging
import random
from typing import Final

from msgspec import Struct

from dataplane.transmit.sender import MAX_ANSWER_BYTES, Answer, Post, Sender
from dataplane.transmit.targets import Target
from dataplane.transmit.tokens import TokenError, Tokens

log = logging.getLogger(__name__)

TIMEOUT_MS: Final = 10_000


class TokenFetch(Struct, eq=False):
    """A fetch on its way. `tokens` are those it was begun for: the record may change meanwhile."""

    target: Target
    tokens: Tokens

    def ended(self, answer: Answer, now_s: float) -> None:
        """Keep the token, or say why there is none."""
        target = self.target
        try:
            self.tokens.fetched(answer.status, answer.body, now_s, random.random())  # noqa: S311 (jitter)
            target.secret_texts = (*target.secrets.texts, self.tokens.text)
        except TokenError as exc:
            why = f"{exc}: {answer.message}"[:200] if answer.message and not answer.status else str(exc)
            target.last_status, target.last_reason = answer.status, f"credential: {why}"
            log.warning("pipe=%s destination=%s waits: %s", target.record.pipe, target.record.name, why)


def begin_fetch(target: Target, tokens: Tokens, sender: Sender) -> None:
    """Fetch a token for this destination."""
    headers, body = tokens.request()
    sender.begin(Post(TokenFetch(target, tokens), tokens.url, headers, body, TIMEOUT_MS, MAX_ANSWER_BYTES))
