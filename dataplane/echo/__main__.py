"""`python -m dataplane.echo`: the echo, a process of its own so that slow deliveries to it hold up no page."""

import asyncio
import os
import sys
from typing import Final

import uvloop

from dataplane.addresses import ECHO_PORT
from dataplane.echo.app import Echo
from dataplane.runtime.asgi_server import serve
from dataplane.runtime.board import Board
from dataplane.runtime.logs import log_as_json

DRAIN_S: Final = 5.0


def main() -> int:
    """Entry point."""
    log_as_json(process="echo")
    echo, board = Echo(), Board()
    board.reads(echo.readings)
    board.serve()
    host = os.environ.get("PENSTOCK_INGEST_HOST", "127.0.0.1")
    port = int(os.environ.get("PENSTOCK_ECHO_PORT", "") or ECHO_PORT)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(echo, host, port, drain_s=DRAIN_S))
    return 0


if __name__ == "__main__":
    sys.exit(main())
