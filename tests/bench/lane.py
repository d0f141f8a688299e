"""One lane in a plain process, as Spark's Python worker runs it: `python -m tests.bench.lane process [c1]`."""

import logging
import signal
import sys

from dataplane.jobs.lanes import make_work
from dataplane.runtime.garbage import collect_seldom
from dataplane.runtime.lane import Lane, LaneIdentity
from dataplane.runtime.settings import settings_from

if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    collect_seldom()
    kind, cell = [*sys.argv[1:], "c1"][:2]
    identity = LaneIdentity(cell, kind, 0, 1, "bench")  # type: ignore[arg-type]
    Lane(identity, settings_from(), make_work).run()
