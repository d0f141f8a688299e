"""`python -m dataplane.ingest --replica ingest-1`: one ingest replica; several share the port, so one may crash."""

import argparse
import asyncio
import signal
import sys
from typing import Final

import uvloop
from granian.constants import Interfaces
from granian.http import HTTP1Settings
from granian.server.embed import Server

from dataplane.ingest.app import IngestApp
from dataplane.ingest.replica import IngestReplica
from dataplane.runtime.garbage import collect_rarely
from dataplane.runtime.settings import settings_from
from dataplane.runtime.telemetry.logs import log_as_json
from dataplane.runtime.telemetry.metrics_registry import MetricsRegistry
from dataplane.runtime.telemetry.tracing import tracing_from

DRAIN_S: Final = 25.0
CATCH_UP_S: Final = 5.0


async def serve(name: str) -> int:
    """Serve until SIGTERM or SIGINT; then accept no more requests, finish those in progress, and exit.

    Return the exit code: 0 if everything was reported to the ledger, else 1; then the next process of this name reports
    the rest.
    """
    settings = settings_from()
    replica = IngestReplica(settings, name, tracing_from("penstock-ingest", name))
    replica.start()
    app = IngestApp(replica)
    registry = MetricsRegistry()
    registry.reads(app.readings)
    registry.reads(replica.readings)
    registry.serve()
    await replica.caught_up(CATCH_UP_S)
    sweeper = asyncio.create_task(app.sweep())
    server = Server(
        app,
        address=settings.ingest_host,
        port=settings.ingest_port,
        interface=Interfaces.RSGI,
        backlog=1024,
        backpressure=4_096,
        websockets=False,
        http1_settings=HTTP1Settings(header_read_timeout=10_000),
    )
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, server.stop)
    await server.serve()
    deadline = loop.time() + DRAIN_S
    while app.active and loop.time() < deadline:
        await asyncio.sleep(0.01)
    sweeper.cancel()
    return 0 if await replica.stop() else 1


def main() -> int:
    """Run the replica that the command line names."""
    parser = argparse.ArgumentParser(prog="python -m dataplane.ingest", description=__doc__)
    parser.add_argument(
        "--replica", required=True, help="unique name of this replica; it must stay the same across restarts"
    )
    arguments = parser.parse_args()
    log_as_json(replica=arguments.replica)
    collect_rarely()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(serve(arguments.replica))


if __name__ == "__main__":
    sys.exit(main())
