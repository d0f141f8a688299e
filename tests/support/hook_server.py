"""HTTP server on loopback that records each POST and answers with the status that a test sets."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class HookRequest:
    """One request. headers: values by lower-case name."""

    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class HookServer:
    """Running server. got: requests so far; status: of the next answers."""

    url: str
    got: list[HookRequest] = field(default_factory=list)
    status: int = 200


@contextmanager
def hook_server() -> Iterator[HookServer]:
    """Run a server until the end of the block."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            hook.got.append(HookRequest(self.path, {k.lower(): v for k, v in self.headers.items()}, body))
            self.send_response(hook.status)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_args: Any) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    hook = HookServer(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield hook
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
