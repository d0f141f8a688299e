"""One lane in a plain process, as Spark's Python worker runs it: `python -m tests.bench.lane process [c1]`.

With the argument `uncounted`, a process lane keeps no ledger and no lags.
"""

import logging
import signal
import sys

from dataplane.jobs.lanes import make_work
from dataplane.ledger.facts import FactBook
from dataplane.process import runner
from dataplane.process.run import MessageRun
from dataplane.runtime.garbage import collect_rarely
from dataplane.runtime.lanes.context import LaneIdentity
from dataplane.runtime.lanes.lane import Lane
from dataplane.runtime.settings import settings_from
from dataplane.runtime.telemetry.lags import LagBook


def count_nothing() -> None:
    """Disable ledger and lags of the process lane: the difference in rate is their cost."""
    for where, name in ((FactBook, "extend"), (LagBook, "add_group"), (MessageRun, "passed"), (MessageRun, "departed")):
        setattr(where, name, lambda *_: None)
    setattr(runner, "_times", lambda _items: [])  # noqa: B010 (no function of its type)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    collect_rarely()
    if "uncounted" in sys.argv:
        sys.argv.remove("uncounted")
        count_nothing()
    kind, cell = [*sys.argv[1:], "c1"][:2]
    identity = LaneIdentity(cell, kind, 0, 1, "bench")  # type: ignore[arg-type]
    Lane(identity, settings_from(), make_work).run()
