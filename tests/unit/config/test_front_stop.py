"""A stop of the web process ends event streams, also one whose request has not begun to stream."""

import asyncio
import threading
from collections.abc import Callable, Iterable, Iterator, MutableMapping
from contextlib import contextmanager
from itertools import repeat
from typing import Any

import pytest

from config.front.app import Front

SCOPE = {
    "type": "http", "http_version": "1.1", "method": "GET", "scheme": "http", "path": "/tail/", "raw_path": b"/tail/",
    "query_string": b"", "headers": [], "server": ("127.0.0.1", 80), "client": ("127.0.0.1", 1),
}  # fmt: skip


class Streaming:
    """Application that streams without end, once `may_begin` is set."""

    def __init__(self) -> None:
        self.called, self.may_begin = threading.Event(), threading.Event()

    def __call__(self, _environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        self.called.set()
        assert self.may_begin.wait(10)
        start_response("200 OK", [("Content-Type", "text/event-stream")])
        return repeat(b": still here\n\n")


@contextmanager
def front_of(app: Streaming) -> Iterator[Front]:
    async def ready() -> str:
        return ""

    front = Front(app, why_not_ready=ready, stream_threads=1, refusal=lambda *_: ([], b""))
    try:
        yield front
    finally:
        front.close()


async def connected() -> dict[str, Any]:
    """Receive the end of the body, then nothing: the browser stays."""
    await asyncio.sleep(3_600)
    return {"type": "http.disconnect"}


def body_at_once() -> Callable[[], Any]:
    sent: list[bool] = []

    async def receive() -> dict[str, Any]:
        if sent:
            return await connected()
        sent.append(True)
        return {"type": "http.request", "body": b"", "more_body": False}

    return receive


@pytest.mark.parametrize("begins", ["before", "after"])
def test_stream_that_begins_before_or_after_the_stop_ends(begins: str):
    async def scenario() -> list[MutableMapping[str, Any]]:
        sent: list[MutableMapping[str, Any]] = []

        async def send(message: MutableMapping[str, Any]) -> None:
            sent.append(message)

        app = Streaming()
        with front_of(app) as front:
            request = asyncio.ensure_future(front(SCOPE, body_at_once(), send))
            await asyncio.to_thread(app.called.wait, 10)
            if begins == "before":
                app.may_begin.set()
                while len(sent) < 2:
                    await asyncio.sleep(0.001)
            front.stop()
            app.may_begin.set()
            await asyncio.wait([request], timeout=5)
            assert request.done(), "the stream continues after the stop"
            assert front.active == 0
        return sent

    assert asyncio.run(scenario())[0]["type"] == "http.response.start"
