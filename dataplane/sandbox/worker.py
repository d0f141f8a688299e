"""`python -m dataplane.sandbox.worker <fd>`: one sandbox worker. It runs jobs from a socket until it is closed.

The kernel enforces the limits, because a regular expression or a big integer can keep the interpreter inside one C
call: the CPU timer kills the process (SIGPROF), and RLIMIT_AS refuses further memory. The worker has no secrets, no
database and no Django: its environment is empty, and it requests rows of look-up tables from the parent.
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

from dataplane.sandbox.jobs import (
    Answer,
    JobDone,
    JobFailed,
    JobOverLimit,
    NeedRow,
    Tools,
    decode_job,
    decode_row,
    encode,
    run,
)
from dataplane.stages.decoding import decode_json
from dataplane.stages.enrich import TableNotFoundError

MEMORY_BYTES: Final = 128 * 1024 * 1024  # in addition to its memory after start-up
MOST_ROWS: Final = 1_000  # of look-up tables, per job
MOST_JOB_BYTES: Final = 16 * 1024 * 1024
MOST_ANSWER_BYTES: Final = 8 * 1024 * 1024
HELLO: Final = encode(JobDone())
log = logging.getLogger("penstock.sandbox")


class ParentTables:
    """Look-up tables that the parent reads (implements dataplane.stages.enrich.TableRows)."""

    def __init__(self, parent: Connection) -> None:
        self._parent = parent
        self.asked = 0

    def row(self, table: str, key: str) -> Any:
        """Return the row; None if there is none. Raises TableNotFoundError, also after MOST_ROWS requests."""
        self.asked += 1
        if self.asked > MOST_ROWS:
            raise TableNotFoundError(table)
        self._parent.send_bytes(encode(NeedRow(table, key)))
        found = decode_row(self._parent.recv_bytes(MOST_JOB_BYTES))
        if not found.is_table:
            raise TableNotFoundError(table)
        return decode_json(found.row)


def limit_cpu(seconds: float) -> None:
    """Let the kernel kill this process after `seconds` more of CPU time; 0 removes the limit."""
    signal.setitimer(signal.ITIMER_PROF, seconds)


def limit_memory() -> None:
    """Limit memory to MEMORY_BYTES more than now, disable core dumps, and make the OOM killer prefer this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit_bytes = pages * resource.getpagesize() + MEMORY_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit_bytes, limit_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


def answer(job: bytes, rows: ParentTables) -> bytes:
    """Return the encoded answer to one encoded job. Every exception becomes an answer."""
    found: Answer
    try:
        text = encode(run(decode_job(job), Tools(rows, time.perf_counter_ns, time.process_time, limit_cpu)))
    except MemoryError:
        found = JobOverLimit("memory")
    except Exception as exc:
        log.exception("sandbox job failed")
        found = JobFailed(f"{type(exc).__name__}: {exc}"[:300])
    else:
        if len(text) <= MOST_ANSWER_BYTES:
            return text
        found = JobOverLimit("answer")
    return encode(found)


def main() -> int:
    """Run jobs until the parent closes the socket. Each job is two messages: its CPU limit in seconds, and the job."""
    logging.basicConfig(level=logging.INFO, stream=sys.stderr)
    parent = Connection(int(sys.argv[1]))
    limit_memory()
    parent.send_bytes(HELLO)
    try:
        while True:
            cpu_s = float(parent.recv_bytes(100))
            job = parent.recv_bytes(MOST_JOB_BYTES)
            limit_cpu(cpu_s)
            text = answer(job, ParentTables(parent))
            limit_cpu(0)
            parent.send_bytes(text)
    except (EOFError, OSError):
        return 0  # the parent has closed the socket or exited


if __name__ == "__main__":
    os.nice(5)  # lower priority than the processes that serve pages
    sys.exit(main())
