"""Turns an ASGI request into a WSGI call and its result into a response; the call runs in the caller's thread."""

import io
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from tempfile import SpooledTemporaryFile
from typing import IO, Any, Final, cast
from urllib.parse import unquote_to_bytes

from dataplane.runtime.web.asgi import AsgiHeaders, Scope

Environ = dict[str, Any]
WsgiApp = Callable[[Environ, Callable[..., Any]], Iterable[bytes]]

IN_MEMORY_BYTES: Final = 1024 * 1024  # of a response; a longer one waits for the client in a file
_EVENT_STREAM: Final = b"text/event-stream"


@dataclass
class WsgiAnswer:
    """Response of the application: its whole `body` or, for an event stream, the iterator `events`."""

    status: int
    headers: AsgiHeaders
    body: IO[bytes] = field(default_factory=io.BytesIO)
    events: Iterator[bytes] | None = None
    close: Callable[[], None] = lambda: None


def environ_of(scope: Scope, body: IO[bytes], length: int | None) -> Environ:
    """Return the WSGI environ of a request. `length`: of the body, None if it is not known.

    Headers with an underscore in their name are dropped: WSGI cannot distinguish `X_Forwarded_For` from
    `X-Forwarded-For`, and a proxy in front overwrites only the latter.
    """
    host, port = scope.get("server") or ("", 0)
    environ: Environ = {
        "REQUEST_METHOD": scope["method"],
        "SCRIPT_NAME": "",
        "PATH_INFO": unquote_to_bytes(scope["raw_path"]).decode("latin-1"),
        "QUERY_STRING": scope["query_string"].decode("latin-1"),
        "SERVER_NAME": str(host),
        "SERVER_PORT": str(port),
        "SERVER_PROTOCOL": f"HTTP/{scope['http_version']}",
        "REMOTE_ADDR": str((scope.get("client") or ("",))[0]),
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": scope["scheme"],
        "wsgi.input": body,
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
        "wsgi.input_terminated": True,
    }
    for name, value in scope["headers"]:
        if b"_" not in name:
            _add_header(environ, name.decode("latin-1").upper().replace("-", "_"), value.decode("latin-1"))
    environ.pop("HTTP_TRANSFER_ENCODING", None)  # the body is already decoded
    if length is not None:
        environ["CONTENT_LENGTH"] = str(length)
    return environ


def call(app: WsgiApp, environ: Environ) -> WsgiAnswer:
    """Run the application for one request. Its whole body is collected, so that no thread waits for a slow client."""
    started: list[Any] = []

    def start_response(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> None:
        if exc_info and started:
            raise exc_info[1].with_traceback(exc_info[2])
        started[:] = [status, headers]

    result = app(environ, start_response)
    close: Callable[[], None] = getattr(result, "close", lambda: None)
    status = int(started[0].split(" ", 1)[0])
    headers = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in started[1]]
    if any(name == b"content-type" and value.startswith(_EVENT_STREAM) for name, value in headers):
        return WsgiAnswer(status, headers, events=iter(result), close=close)
    try:
        return WsgiAnswer(status, headers, _collected(result, is_head=environ["REQUEST_METHOD"] == "HEAD"))
    finally:
        close()


def _collected(chunks: Iterable[bytes], *, is_head: bool) -> IO[bytes]:
    body = cast("IO[bytes]", SpooledTemporaryFile(max_size=IN_MEMORY_BYTES))  # noqa: SIM115 (closed when it is sent)
    if not is_head:
        for chunk in chunks:
            body.write(chunk)
    body.seek(0)
    return body


def _add_header(environ: Environ, name: str, value: str) -> None:
    key = name if name in ("CONTENT_TYPE", "CONTENT_LENGTH") else f"HTTP_{name}"
    if key in environ:
        value = f"{environ[key]}{'; ' if key == 'HTTP_COOKIE' else ','}{value}"
    environ[key] = value
