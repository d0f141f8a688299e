"""Sample of a failure for an alert: request, response and curl line, without secrets or payload. Pure."""

import shlex
from typing import Any, Final

from dataplane.ledger.units import format_position
from dataplane.spec import HttpDestination, destination_of
from dataplane.spec.destination import BasicAuth, BearerAuth, HeaderAuth, OAuth2
from mgmt.alerts.fingerprint import status_of
from mgmt.models import DeadLetter, Destination

MASK: Final = "***"


def sample_of(letter: DeadLetter, destination: Destination | None) -> dict[str, Any]:
    """Return the sample of a dead letter for its alert.

    It has a request only if the destination is an HTTP one: without a destination the message was never sent.
    """
    sample: dict[str, Any] = {
        "message_id": letter.message_id,
        "position": format_position(letter.position) if letter.position is not None else "",
        "node": letter.node,
        "reason": letter.detail,
        "answer": letter.answer,
        "status": status_of(letter.answer),
    }
    to = destination_of(destination.config) if destination is not None else None
    if isinstance(to, HttpDestination):
        request = _request(letter, to)
        sample |= {"request": request, "curl": request_curl(request)}
    return sample


def request_curl(request: dict[str, Any]) -> str:
    """Return the request as a curl command, which reads the body from the file message.json."""
    headers = [f"-H {shlex.quote(f'{name}: {value}')}" for name, value in request["headers"].items()]
    parts = [f"curl -sS -X {request['method']} {shlex.quote(request['url'])}", *headers, "--data-binary @message.json"]
    return " \\\n  ".join(parts)


def _request(letter: DeadLetter, to: HttpDestination) -> dict[str, Any]:
    headers = {
        "Content-Type": "application/json",
        "webhook-id": letter.message_id,
        "webhook-timestamp": "<Unix time in seconds>",
        "webhook-signature": f"v1,{MASK}",
        **to.headers,
        **_auth_header(to),
    }
    return {"method": "POST", "url": _without_values(to.url), "headers": headers}


def _without_values(url: str) -> str:
    """Mask each value of the URL's query, because many URLs carry a token there."""
    path, mark, query = url.partition("?")
    names = (part.partition("=") for part in query.split("&"))
    return path + mark + "&".join(f"{name}={MASK}" if sign else name for name, sign, _ in names)


def _auth_header(to: HttpDestination) -> dict[str, str]:
    match to.auth:
        case HeaderAuth(name):
            return {name: MASK}
        case BasicAuth():
            return {"Authorization": f"Basic {MASK}"}
        case BearerAuth() | OAuth2():
            return {"Authorization": f"Bearer {MASK}"}
    return {}
