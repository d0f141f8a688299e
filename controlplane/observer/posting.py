"""Post messages of notification channels: signed webhooks, chats and pagers, all through the address guard."""

import json
import time
from collections.abc import Sequence
from typing import Any, Final

from django.conf import settings

from controlplane.observer.chat_notices import PAGER_URLS, NoticeText, body_of
from dataplane.spec.guard import parse_networks
from dataplane.transmit.http.sender import HttpPolicy, HttpRequest, HttpResponse, HttpSender
from dataplane.transmit.http.signature import sign, signer

WEBHOOK_MS: Final = 5_000
TURN_S: Final = 0.2
NO_ANSWER: Final = "no response in time"
_HEADER_LINES: Final = ("Expect:", "Content-Type: application/json", "User-Agent: Penstock/1")


def post_all(requests: Sequence[HttpRequest]) -> dict[int, str]:
    """Send requests concurrently, each for at most WEBHOOK_MS.

    Returns the error by token, "" for a request that the receiver accepted.
    """
    if not requests:
        return {}
    allowed = parse_networks(settings.PENSTOCK_DESTINATION_ALLOW)
    sender = HttpSender(HttpPolicy(allowed, https_only=settings.PRODUCTION, own=settings.PENSTOCK_OWN_INGEST))
    errors: dict[int, str] = {}
    try:
        for request in requests:
            sender.begin(request)
        deadline = time.monotonic() + 2 * WEBHOOK_MS / 1_000
        while sender.active and time.monotonic() < deadline:
            errors |= {answer.token: _error(answer) for answer in sender.poll(TURN_S)}
    finally:
        sender.close()
    return {request.token: errors.get(request.token, NO_ANSWER) for request in requests}


def chat_request(token: int, kind: str, secret: str, notice: NoticeText) -> HttpRequest:
    """Return the request to a chat or pager. `secret`: its URL, or the integration key of a pager."""
    body = json.dumps(body_of(kind, notice, secret)).encode()
    return HttpRequest(token, PAGER_URLS.get(kind, secret), [*_HEADER_LINES], body, WEBHOOK_MS)


def signed_request(
    token: int, url: str, secret: str, content: dict[str, Any], *, message_id: str, now_s: int
) -> HttpRequest:
    """Return the request to a webhook, signed as Standard Webhooks describe. Raises ValueError for a bad secret."""
    body = json.dumps(content).encode()
    headers = {
        "webhook-id": message_id,
        "webhook-timestamp": str(now_s),
        "webhook-signature": sign([signer(secret)], message_id, now_s, body),
    }
    lines = [*_HEADER_LINES, *(f"{name}: {value}" for name, value in headers.items())]
    return HttpRequest(token, url, lines, body, WEBHOOK_MS)


def _error(answer: HttpResponse) -> str:
    if 200 <= answer.status < 300:
        return ""
    if answer.forbidden:
        return "address refused: private, local or reserved"
    return f"returned {answer.status}" if answer.status else answer.message or "no response"
