"""Garbage collection settings of hot processes: run Python's cyclic collector rarely.

A lane and an ingest replica hold tens of thousands of messages at a time, and with the default threshold of 700 new
objects the collector traverses them again and again: a fifth of a process lane's time as measured. The loops' objects
are freed by reference counts; cycles are rare (exceptions with tracebacks), so a run every 100 000 objects bounds them.
The web process calls it for its modules: one traversal of them in the middle of a request took as long as the request.
"""

import gc
from typing import Final

NEW_OBJECTS: Final = 100_000


def collect_rarely() -> None:
    """Make the collector run rarely. Call once per process, after its imports: it never traverses existing objects."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(NEW_OBJECTS, 20, 100)
