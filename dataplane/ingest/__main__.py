"""`python -m dataplane.ingest --replica ingest-1`: one ingest replica; several share the port, so one may crash."""

import argparse
import asyncio
import signal
import sys
from collections.abc import Iterator
from functools import partial
from typing import Final

import uvloop

from dataplane.ingest.app import IngestApp
from dataplane.ingest.replica import IngestReplica
from dataplane.runtime.garbage import collect_rarely
from dataplane.runtime.settings import settings_from
from dataplane.runtime.telemetry.logs import log_as_json
from dataplane.runtime.telemetry.metrics_registry import MetricReading, MetricsRegistry
from dataplane.runtime.telemetry.tracing import tracing_from
from dataplane.runtime.web.http1.server import HttpServer

DRAIN_S: Final = 20.0  # with the reports after it, less than the 30 s until SIGKILL in a box
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
    server = HttpServer(app)
    registry = MetricsRegistry()
    for readings in (app.readings, replica.readings, partial(_connections, server)):
        registry.reads(readings)
    registry.serve()
    await replica.caught_up(CATCH_UP_S)
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    await server.start(settings.ingest_host, settings.ingest_port)
    replica.serves = True
    await stopped.wait()
    await server.drain(DRAIN_S)
    return 0 if await replica.stop() else 1


def _connections(server: HttpServer) -> Iterator[MetricReading]:
    yield MetricReading("penstock_ingest_connections", server.connections)
    yield MetricReading("penstock_ingest_refused_connections_total", server.refused)


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
