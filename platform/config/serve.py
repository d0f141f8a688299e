"""`python -m config.serve`: the web process, Django behind its asynchronous front (docs/decisions/0232)."""

import asyncio
import json
import sys
import threading
from typing import Final

import uvloop
from django.conf import settings
from django.db import close_old_connections
from django.http import HttpRequest
from django.urls import get_resolver

from config.front.app import Front
from config.front.readiness import Readiness
from config.metrics_server import serve_web
from config.wsgi import application  # first: it sets Django up
from dataplane.runtime.garbage import collect_rarely
from dataplane.runtime.web.asgi import PLAIN_TEXT, AsgiHeaders
from dataplane.runtime.web.asgi_server import serve
from mgmt.registry.wire import MEDIA_TYPES, error_response
from mgmt.sandbox import trials
from mgmt.tail.hub import MOST_VIEWERS
from mgmt.tenancy.row_scope import restrict_process
from mgmt.web.problems import MEDIA_TYPE, PROBLEMS, problem_body

DRAIN_S: Final = 7.0  # the box gives its programs ten seconds to end
API: Final = "/api/"
WIRE: Final = "/registry/"


def refusal(path: str, code: str, detail: str) -> tuple[AsgiHeaders, bytes]:
    """Render the refusal of a request by the front: problem+json under /api/, plain text for pages."""
    if path.startswith(WIRE):
        return [(b"content-type", MEDIA_TYPES[0].encode())], error_response(PROBLEMS[code].status, detail).content
    if not path.startswith(API):
        return [PLAIN_TEXT], f"{detail}\n".encode()
    request = HttpRequest()
    request.path = path
    return [(b"content-type", MEDIA_TYPE.encode())], json.dumps(problem_body(request, code, detail)).encode()


async def _serve() -> None:
    readiness = Readiness(settings.DATABASES["default"])
    front = Front(
        application,
        why_not_ready=readiness.why_not_ready,
        stream_threads=MOST_VIEWERS,
        refusal=refusal,
        after_call=close_old_connections,
    )
    threading.Thread(target=trials().warm, name="warm-sandbox", daemon=True).start()
    host, port = settings.PENSTOCK_WEB_HOST, settings.PENSTOCK_WEB_PORT
    try:
        await serve(front, host, port, drain_s=DRAIN_S, on_stop=front.stop)
    finally:
        front.close()
        readiness.close()


def main() -> int:
    """Entry point."""
    restrict_process()
    serve_web()
    get_resolver().url_patterns  # noqa: B018 (loads every page and API view)
    collect_rarely()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve())
    return 0


if __name__ == "__main__":
    sys.exit(main())
