"""Lower CPU priority for batch work next to lanes, whose application, hosts and Python workers it shares."""

import logging
import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

log = logging.getLogger("tasks")

NICENESS: Final = 10  # added to that of the process: about a tenth of a lane's share of a CPU that both want
_Result = TypeVar("_Result")


def at_low_priority(run: Callable[[], _Result]) -> _Result:
    """Call a function in a thread with a lower CPU priority; return its result, or raise its exception.

    On Linux each thread has a priority, and the threads that it starts inherit it, as those of its Kafka clients. The
    process keeps its own: without privileges it could not raise it again, and Spark may give it to a lane next.
    """
    with ThreadPoolExecutor(1, "low-priority", initializer=_lower_priority) as pool:
        return pool.submit(run).result()


def _lower_priority() -> None:
    """Lower the priority of this thread; keep it where the system forbids the call, because the work is needed."""
    if sys.platform == "linux":
        thread = threading.get_native_id()
        try:
            os.setpriority(os.PRIO_PROCESS, thread, min(19, os.getpriority(os.PRIO_PROCESS, thread) + NICENESS))
        except OSError as exc:
            log.warning("a task keeps the priority of its process: %s", exc)
