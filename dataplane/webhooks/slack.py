"""Slack: HMAC-SHA256 of version, time and body, in hex; events are JSON, commands and interactions are forms.

Source: https://docs.slack.dev/authentication/verifying-requests-from-slack; the handshake:
https://docs.slack.dev/reference/events/url_verification.
"""

import hmac
from collections.abc import Sequence
from typing import Final

from dataplane.webhooks.challenge import read_challenge, reply_to
from dataplane.webhooks.preset import FORM, JSON, HeaderPlace, Preset
from dataplane.webhooks.request import Reply, WebhookRequest, check_match, check_time

SIGNATURE: Final = "x-slack-signature"
TIME: Final = "x-slack-request-timestamp"


def verify(request: WebhookRequest, secrets: Sequence[str], now_s: int) -> None:
    """Check `X-Slack-Signature: v0=<hex>`. Raises UnverifiedError."""
    given = request.signed(SIGNATURE)
    content = f"v0:{check_time(request.signed(TIME), now_s)}:".encode() + request.body
    check_match([given], ("v0=" + hmac.new(secret.encode(), content, "sha256").hexdigest() for secret in secrets))


def handshake(request: WebhookRequest) -> Reply | None:
    """Return the challenge of a `url_verification`; None for all other requests."""
    if request.media_type != JSON or b"url_verification" not in request.body:
        return None
    asked = read_challenge(request.body)
    return reply_to(asked) if asked.type == "url_verification" and asked.challenge else None


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
