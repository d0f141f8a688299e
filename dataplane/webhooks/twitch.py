"""Twitch EventSub: HMAC-SHA256 of id, time and body, in hex; a subscription begins with a challenge.

Source: https://dev.twitch.tv/docs/eventsub/handling-webhook-events ("Verifying the event message", "Responding to a
challenge request"); the tolerance: https://dev.twitch.tv/docs/eventsub ("Guarding against replay attacks"). The type
of a message is not signed, so a request with a challenge must have one in its signed body.
"""

import hmac
import re
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from dataplane.webhooks.challenge import read_challenge, reply_to
from dataplane.webhooks.preset import JSON, HeaderPlace, Preset, check_any_secret
from dataplane.webhooks.request import INVALID, Reply, UnverifiedError, WebhookRequest, check_age, check_match

ID: Final = "twitch-eventsub-message-id"
TIME: Final = "twitch-eventsub-message-timestamp"
SIGNATURE: Final = "twitch-eventsub-message-signature"
MESSAGE_TYPE: Final = "twitch-eventsub-message-type"
TYPE: Final = "twitch-eventsub-subscription-type"
TOLERANCE_S: Final = 600
_RFC3339: Final = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.[0-9]{1,9})?Z")


def verify(request: WebhookRequest, secrets: Sequence[str], now_s: int) -> None:
    """Check `Twitch-Eventsub-Message-Signature: sha256=<hex>`. Raises UnverifiedError."""
    given, id_, time = (request.signed(name) for name in (SIGNATURE, ID, TIME))
    check_age(_unix_time(time), now_s, TOLERANCE_S)
    content = (id_ + time).encode("utf-8", "replace") + request.body
    check_match([given], ("sha256=" + hmac.new(secret.encode(), content, "sha256").hexdigest() for secret in secrets))


def handshake(request: WebhookRequest) -> Reply | None:
    """Return the challenge of a `webhook_callback_verification`; None for all other requests."""
    if request.first(MESSAGE_TYPE) != "webhook_callback_verification":
        return None
    asked = read_challenge(request.body)
    return reply_to(asked) if asked.challenge else None


def check_secret(secret: str) -> None:
    """Raise ValueError unless the secret has 10 to 100 ASCII characters, as Twitch demands."""
    check_any_secret(secret)
    if not 10 <= len(secret) <= 100:
        raise ValueError("needs 10 to 100 printable ASCII characters")


def _unix_time(text: str) -> int:
    found = _RFC3339.fullmatch(text)
    try:
        time = datetime.fromisoformat(f"{found[1]}+00:00") if found else None
    except ValueError:  # no day or hour of the calendar
        time = None
    if time is None:
        raise UnverifiedError(INVALID, "needs a signed time such as 2026-01-01T00:00:00.000Z")
    return int(time.timestamp())


TWITCH: Final = Preset(
    name="twitch",
    title="Twitch EventSub",
    verify=verify,
    handshake=handshake,
    check_secret=check_secret,
    headers=(ID, "twitch-eventsub-message-retry", MESSAGE_TYPE, SIGNATURE, TIME, TYPE),
    media_types=(JSON,),
    id=HeaderPlace(ID),
    type="subscription.type",
    time=HeaderPlace(TIME),
)
