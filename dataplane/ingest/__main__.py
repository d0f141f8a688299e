"""`python -m dataplane.ingest --replica ingest-1`: one replica; several share the port, so that one may die."""

import argparse
import asyncio
import signal
from typing import Final

import uvloop
from granian.constants import Interfaces
from granian.http import HTTP1Settings
from granian.server.embed import Server

from dataplane.ingest.app import IngestApp
from dataplane.ingest.replica import Replica
from dataplane.runtime.board import Board
from dataplane.runtime.garbage import collect_seldom
from dataplane.runtime.logs import log_as_json
from dataplane.runtime.settings import settings_from
from dataplane.runtime.tracing import tracing_from

DRAIN_S: Final = 25.0


async def serve(name: str) -> None:
    """Serve until SIGTERM or SIGINT; then take no more, answer what is under way, and leave."""
    settings = settings_from()
    replica = Replica(settings, name, tracing_from("penstock-ingest", name))
    replica.start()
    app = IngestApp(replica)
    board = Board()
    board.reads(app.readings)
    board.reads(replica.readings)
    board.serve()
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
    await replica.stop()


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(prog="python -m dataplane.ingest", description=__doc__)
    parser.add_argument("--replica", required=True, help="this replica's own name; it must be stable over restarts")
    arguments = parser.parse_args()
    log_as_json(replica=arguments.replica)
    collect_seldom()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(arguments.replica))


if __name__ == "__main__":
    main()
