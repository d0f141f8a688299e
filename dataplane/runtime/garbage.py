"""How often Python's cyclic collector looks through the objects of a hot process: seldom.

A lane and an ingest replica hold tens of thousands of messages at a time, and with the default threshold of 700 new
objects each of them is looked at again and again: a fifth of a process lane's time as measured. What the loops make is
freed by reference counts; cycles are rare (exceptions with tracebacks), so a look every 100 000 objects bounds them.
"""

import gc
from typing import Final

NEW_OBJECTS: Final = 100_000


def collect_seldom() -> None:
    """Call once in a process, after its imports: what is there already is never looked at again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(NEW_OBJECTS, 20, 100)
