"""WSGI application behind the front of the web process: `python -m tests.support.front_server <module> <port>`.

The module has `application`, and may define `PAGE_BODY` and `UPLOAD_BODY`. Postgres is expected at DATABASE_URL.
"""

import asyncio
import importlib
import os
import sys

import environ
import uvloop

from config.front.app import PAGE_BODY, UPLOAD_BODY, Front
from config.front.readiness import Readiness
from config.serve import refusal
from dataplane.runtime.web.asgi_server import serve
from mgmt.tail.hub import MOST_VIEWERS


async def run(module: str, port: int) -> None:
    """Serve until SIGTERM."""
    served = importlib.import_module(module)
    readiness = Readiness(environ.Env.db_url_config(os.environ.get("DATABASE_URL", "postgresql://x@127.0.0.1:1/x")))
    front = Front(
        served.application,
        why_not_ready=readiness.why_not_ready,
        stream_threads=MOST_VIEWERS,
        refusal=refusal,
        page_body=getattr(served, "PAGE_BODY", PAGE_BODY),
        upload_body=getattr(served, "UPLOAD_BODY", UPLOAD_BODY),
    )
    await serve(front, "127.0.0.1", port, drain_s=7.0, on_stop=front.stop)
    front.close()
    readiness.close()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run(sys.argv[1], int(sys.argv[2])))
