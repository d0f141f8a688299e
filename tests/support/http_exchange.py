"""Exchange with an HTTP application in memory: a request whose body arrives as it is read, and its response."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from dataplane.runtime.web.errors import ClientGoneError, HttpError
from dataplane.runtime.web.http1.head import ResponseHeaders, read_head
from dataplane.runtime.web.http1.request import Request


class MemoryExchange:
    """One request and its response. `was_read`: the application has asked for the body."""

    def __init__(
        self,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        *,
        target: str = "/v1/events",
        method: str = "POST",
        chunks: int = 0,
        before_body: Callable[[], None] = lambda: None,
        failure: HttpError | ClientGoneError | None = None,
    ) -> None:
        """chunks: how often the body is sent, as so many chunks; 0: once, with a length. before_body: called before.

        failure: arrives in place of the body
        """
        framing = ("transfer-encoding", "chunked") if chunks else ("content-length", str(len(body)))
        lines = list(({"host": "ingest.example"} | dict([framing]) | dict(headers or {})).items())
        head = read_head(method.encode(), target.encode(), "1.1", lines, keep_alive=True)
        self.request = Request(head, self)
        self.was_read = False
        self.status, self.headers, self.body = 0, dict[str, str](), b""
        self._pieces = [body] * (chunks or 1)
        self._before_body = before_body
        self._failure = failure

    @property
    def answer(self) -> Any:
        """Return the body of the response, which is JSON."""
        return json.loads(self.body)

    def want_body(self) -> None:
        """Let the next piece of the body arrive."""
        if not self.was_read:
            self.was_read = True
            self._before_body()
        if self._failure is not None:
            self.request.fail(self._failure)
            return
        if self._pieces:
            self.request.feed(self._pieces.pop())
        if not self._pieces:
            self.request.complete()

    def send(self, _request: Request, status: int, headers: ResponseHeaders, body: bytes) -> None:
        """Keep the response."""
        assert self.status == 0, "there is one response"
        self.status, self.headers, self.body = status, dict(headers), body
