"""`python -m dataplane.table_queries`: look-up table rows of this host over HTTP."""

import asyncio
import os
import sys
from typing import Final

import uvloop

from dataplane.addresses import TABLES_PORT
from dataplane.runtime.garbage import collect_rarely
from dataplane.runtime.lookups import open_lookups
from dataplane.runtime.settings import settings_from
from dataplane.runtime.telemetry.logs import log_as_json
from dataplane.runtime.telemetry.metrics_registry import MetricsRegistry
from dataplane.runtime.web.asgi_server import serve
from dataplane.table_queries.app import TableQueries
from dataplane.table_queries.reader import TableReader
from dataplane.tables.optional_files import OptionalFiles

DRAIN_S: Final = 5.0
# While this process replicates, a request waits for the interpreter as long as the replicator may keep it. Python's
# default of 5 ms is longer than the time in which 99 % of the requests are to be answered.
SWITCH_S: Final = 0.0005


def main() -> int:
    """Serve queries until the process is stopped."""
    log_as_json(process="table-queries")
    sys.setswitchinterval(SWITCH_S)
    collect_rarely()
    settings, registry = settings_from(), MetricsRegistry()
    lookups = open_lookups(settings.var, settings.kafka, OptionalFiles())
    app = TableQueries(TableReader(lookups, settings.fernet_keys), registry)
    registry.reads(app.readings)
    registry.serve()
    port = int(os.environ.get("PENSTOCK_TABLES_PORT", "") or TABLES_PORT)
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(serve(app, settings.ingest_host, port, drain_s=DRAIN_S, on_stop=app.stop))
    finally:
        lookups.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
