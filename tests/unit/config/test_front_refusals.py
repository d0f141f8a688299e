"""The front refers to nothing of a refused request, so that the server closes its connection at once."""

import asyncio
import contextlib
import gc
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

from config.front.app import Front
from dataplane.runtime.web.asgi import BodyReader, BodyRule
from tests.unit.config.test_front_stop import SCOPE

SLOW = BodyRule(1_000, patience_s=0.02)


class Client:
    """Client that sends the first byte of its body and no other; it keeps the statuses of its responses."""

    def __init__(self) -> None:
        self.messages = iter([{"type": "http.request", "body": b"x", "more_body": True}])
        self.statuses: list[int] = []

    async def receive(self) -> Any:
        if message := next(self.messages, None):
            return message
        return await asyncio.sleep(3_600)

    async def send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.statuses.append(message["status"])


def reading(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """Read the body, as an application does."""
    environ["wsgi.input"].read()
    start_response("200 OK", [])
    return [b""]


@pytest.fixture
def no_collector() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collector")
def test_nothing_refers_to_a_client_whose_messages_fail():
    class Broken(Client):
        async def receive(self) -> Any:
            raise RuntimeError("no message")

    async def read() -> weakref.ref[Client]:
        client = Broken()
        with contextlib.suppress(RuntimeError):
            await BodyReader([], client.receive, SLOW).chunk()
        return weakref.ref(client)

    async def scenario() -> None:
        client = await read()
        await asyncio.sleep(0.01)
        assert client() is None

    asyncio.run(scenario())


@pytest.mark.usefixtures("no_collector")
@pytest.mark.parametrize("path", ["/pipes/", "/tables/tbl_1/upload/"])
def test_nothing_refers_to_a_client_whose_slow_body_was_refused(path: str):
    of_upload = {"method": "POST", "path": path, "raw_path": path.encode(), "headers": [(b"content-length", b"1000")]}
    scope = SCOPE | of_upload

    async def ready() -> str:
        return ""

    async def refused_client() -> weakref.ref[Client]:
        front = Front(
            reading, why_not_ready=ready, stream_threads=1, refusal=lambda *_: ([], b""), page_body=SLOW,
            upload_body=SLOW,
        )  # fmt: skip
        client = Client()
        await front(scope, client.receive, client.send)
        assert client.statuses == [408]
        front.close()
        return weakref.ref(client)

    async def scenario() -> None:
        client = await refused_client()
        await asyncio.sleep(0.01)  # the cancelled read ends in a later step of the loop
        assert client() is None

    asyncio.run(scenario())
