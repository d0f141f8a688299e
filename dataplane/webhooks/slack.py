"""Slack: HMAC-SHA256 of version, time and body, in hex; events are JSON, commands and interactions are forms.

Source: https://docs.slack.dev/authentication/verifying-requests-from-slack; the handshake:
https://docs.slack.dev/reference/events/url_verification.
"""

import hmac
from collections.abc import Sequence
from typing import Final

import msgspec

from dataplane.webhooks.preset import FORM, JSON, HeaderPlace, Preset
from dataplane.webhooks.request import Reply, WebhookRequest, check_match, check_time

SIGNATURE: Final = "x-slack-signature"
TIME: Final = "x-slack-request-timestamp"
MAX_CHALLENGE: Final = 1_024


class _Challenge(msgspec.Struct):
    type: str = ""
    challenge: str = ""


_challenge = msgspec.json.Decoder(_Challenge).decode


def verify(request: WebhookRequest, secrets: Sequence[str], now_s: int) -> None:
    """Check `X-Slack-Signature: v0=<hex>`. Raises UnverifiedError."""
    given = request.signed(SIGNATURE)
    content = f"v0:{check_time(request.signed(TIME), now_s)}:".encode() + request.body
    check_match([given], ("v0=" + hmac.new(secret.encode(), content, "sha256").hexdigest() for secret in secrets))


def handshake(request: WebhookRequest) -> Reply | None:
    """Return the challenge of a `url_verification`; None for all other requests."""
    if request.media_type != JSON or b"url_verification" not in request.body:
        return None
    try:
        asked = _challenge(request.body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if asked.type != "url_verification" or not 1 <= len(asked.challenge) <= MAX_CHALLENGE:
        return None
    return Reply(200, "text/plain; charset=utf-8", asked.challenge.encode("utf-8", "replace"))


SLACK: Final = Preset(
    name="slack",
    title="Slack",
    verify=verify,
    handshake=handshake,
    headers=(SIGNATURE, TIME, "x-slack-retry-num", "x-slack-retry-reason"),
    media_types=(JSON, FORM),
    id="event_id",
    type="event.type",
    time=HeaderPlace(TIME),
    reply=Reply(200),  # a body would be shown as the answer to a command
)
