"""The echo answers signed requests of any sender, keeps nothing, and refuses bodies that are large or slow."""

import asyncio
from typing import Any

import msgspec
import pytest

from dataplane.echo import app
from dataplane.echo.app import Echo

SIGNED = [(b"webhook-id", b"msg_1"), (b"webhook-timestamp", b"1"), (b"webhook-signature", b"v1,c2lnbmVk")]


def asked(
    chunks: list[bytes], headers: list[tuple[bytes, bytes]] = SIGNED, *, path: str = "/echo/", method: str = "POST"
) -> tuple[int, dict[bytes, bytes], bytes]:
    """Return status, headers and body of the response; a request without chunks left sends nothing more."""
    sent: list[Any] = []
    left = list(chunks)

    async def receive() -> dict[str, Any]:
        if not left:
            await asyncio.Event().wait()
        return {"type": "http.request", "body": left.pop(0), "more_body": left != [] or chunks[-1] == b"..."}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "path": path, "method": method, "headers": headers}
    asyncio.run(Echo()(scope, receive, send))
    return sent[0]["status"], dict(sent[0]["headers"]), sent[1]["body"]


def test_signed_delivery_is_answered_200():
    assert asked([b'{"order":', b" 1}"])[0] == 200


@pytest.mark.parametrize("missing", range(3))
def test_unsigned_delivery_is_refused(missing: int):
    status, _, body = asked([b"{}"], [header for place, header in enumerate(SIGNED) if place != missing])
    assert status == 401
    assert b"webhook-signature" in body


def test_large_body_is_refused_by_its_declared_and_by_its_received_length():
    most = app.BODY.most_bytes
    assert asked([b"x" * most])[0] == 200
    assert asked([b"x" * most, b"x"])[0] == 413
    assert asked([b"..."], [*SIGNED, (b"content-length", str(most + 1).encode())])[0] == 413


def test_slow_body_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(app, "BODY", msgspec.structs.replace(app.BODY, patience_s=0.05))
    status, headers, _ = asked([b"{", b"..."])
    assert (status, headers[b"connection"]) == (408, b"close")


def test_bodies_beyond_the_memory_limit_of_the_process_are_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(app, "HELD_BYTES", 10)
    assert asked([b"x" * 10])[0] == 200
    status, headers, _ = asked([b"x" * 11])
    assert status == 503
    assert b"retry-after" in headers


def test_only_posts_to_its_path_are_accepted():
    assert asked([b""], method="GET")[0] == 405
    assert asked([b"{}"], path="/elsewhere/")[0] == 404


def test_health_checks_are_answered():
    assert asked([b""], [], path="/livez", method="GET")[0] == 200
    assert asked([b""], [], path="/readyz", method="GET")[0] == 200
