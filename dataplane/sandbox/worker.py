"""`python -m dataplane.sandbox.worker <fd>`: one sandbox worker. It runs jobs from a socket until that is closed.

The kernel keeps the limits, because a regular expression or a big number holds the interpreter inside one C call: the
timer of CPU time kills the process (SIGPROF), and memory beyond RLIMIT_AS is not given. It has no secrets, no database
and no Django: its environment is empty, and what it needs of the parent it asks for.
"""

import contextlib
import logging
import os
import resource
import signal
import sys
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

from dataplane.sandbox.jobs import Answer, Broken, Done, NeedRow, OverLimit, Tools, decode_job, decode_row, encode, run
from dataplane.stages.decoding import decode_json
from dataplane.stages.enrich import TableGoneError

MEMORY_BYTES: Final = 128 * 1024 * 1024  # beyond what it has when it has started
MOST_ROWS: Final = 1_000  # of look-up tables, a job
MOST_JOB_BYTES: Final = 16 * 1024 * 1024
MOST_ANSWER_BYTES: Final = 8 * 1024 * 1024
HELLO: Final = encode(Done())
log = logging.getLogger("penstock.sandbox")


class ParentsRows:
    """Look-up tables, read by the parent (dataplane.stages.enrich.Rows)."""

    def __init__(self, parent: Connection) -> None:
        self._parent = parent
        self.asked = 0

    def row(self, table: str, key: str) -> Any:
        """The row; None if there is none. Raises TableGoneError."""
        self.asked += 1
        if self.asked > MOST_ROWS:
            raise TableGoneError(table)
        self._parent.send_bytes(encode(NeedRow(table, key)))
        found = decode_row(self._parent.recv_bytes(MOST_JOB_BYTES))
        if not found.is_table:
            raise TableGoneError(table)
        return decode_json(found.row)


def limit_cpu(seconds: float) -> None:
    """Have the kernel kill this process when it has used so much more CPU time; 0 takes the limit away."""
    signal.setitimer(signal.ITIMER_PROF, seconds)


def limit_memory() -> None:
    """Give this process MEMORY_BYTES more than it has now and no core dump; the OOM killer takes it before others."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + MEMORY_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


def answer(job: bytes, rows: ParentsRows) -> bytes:
    """The answer to one job, whatever it does."""
    found: Answer
    try:
        text = encode(run(decode_job(job), Tools(rows, time.perf_counter_ns, time.process_time, limit_cpu)))
    except MemoryError:
        found = OverLimit("memory")
    except Exception as exc:
        log.exception("a job failed")
        found = Broken(f"{type(exc).__name__}: {exc}"[:300])
    else:
        if len(text) <= MOST_ANSWER_BYTES:
            return text
        found = OverLimit("answer")
    return encode(found)


def main() -> int:
    """Entry point. Each job comes as CPU seconds and the job itself."""
    logging.basicConfig(level=logging.INFO, stream=sys.stderr)
    parent = Connection(int(sys.argv[1]))
    limit_memory()
    parent.send_bytes(HELLO)
    try:
        while True:
            cpu_s = float(parent.recv_bytes(100))
            job = parent.recv_bytes(MOST_JOB_BYTES)
            limit_cpu(cpu_s)
            text = answer(job, ParentsRows(parent))
            limit_cpu(0)
            parent.send_bytes(text)
    except (EOFError, OSError):
        return 0  # the parent has closed the socket, or is gone


if __name__ == "__main__":
    os.nice(5)  # pages go first
    sys.exit(main())
