"""`python -m dataplane.echo`: the echo, in a process of its own, so that slow deliveries to it delay no page."""

import asyncio
import os
import sys
from typing import Final

import uvloop

from dataplane.addresses import ECHO_PORT
from dataplane.echo.app import Echo
from dataplane.runtime.telemetry.logs import log_as_json
from dataplane.runtime.telemetry.metrics_registry import MetricsRegistry
from dataplane.runtime.web.asgi_server import serve

DRAIN_S: Final = 5.0


def main() -> int:
    """Serve the echo until the process is stopped."""
    log_as_json(process="echo")
    echo, registry = Echo(), MetricsRegistry()
    registry.reads(echo.readings)
    registry.serve()
    host = os.environ.get("PENSTOCK_INGEST_HOST", "127.0.0.1")
    port = int(os.environ.get("PENSTOCK_ECHO_PORT", "") or ECHO_PORT)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(echo, host, port, drain_s=DRAIN_S))
    return 0


if __name__ == "__main__":
    sys.exit(main())
