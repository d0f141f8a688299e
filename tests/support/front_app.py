"""WSGI application for tests of the front: /block/<file> waits for a file, others describe the request."""

import json
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from dataplane.runtime.web.asgi import BodyRule

PAGE_BODY = BodyRule(100_000, patience_s=1.0, least_bytes_per_s=20_000)
UPLOAD_BODY = BodyRule(10_000_000, patience_s=1.0)
_MEGABYTE = b"x" * 1_000_000


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """Return the response for the request's path."""
    path, body = environ["PATH_INFO"], b""
    if path.startswith("/block/"):
        gate = Path(path.removeprefix("/block"))
        while not gate.exists():
            time.sleep(0.02)
    elif path == "/environ":
        body = json.dumps({name: value for name, value in environ.items() if isinstance(value, str)}).encode()
    elif path == "/megabytes":
        start_response("200 OK", [("Content-Type", "text/plain")])
        return (_MEGABYTE for _ in range(20))
    elif path.endswith("/upload/"):
        if environ.get("HTTP_AUTHORIZATION") == "none":
            start_response("401 Unauthorized", [])
            return [b"nobody\n"]
        body = str(sum(len(data) for data in iter(lambda: environ["wsgi.input"].read(10_000), b""))).encode()
    else:
        body = str(len(environ["wsgi.input"].read())).encode()
    start_response("200 OK", [("Content-Type", "text/plain"), ("Set-Cookie", "a=1"), ("Set-Cookie", "b=2")])
    return [body]
