"""Pool of sandbox workers of the web process: a few processes and a bounded queue."""

import atexit
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
import structlog

from dataplane.sandbox.jobs import Answer, JobFailed, JobOverLimit, NeedRow, RowFound, SandboxJob, decode_answer, encode
from dataplane.sandbox.worker import MEMORY_BYTES, MOST_ANSWER_BYTES
from dataplane.stages.enrich import EmptyTables, TableNotFoundError, TableRows
from mgmt.sandbox.errors import SandboxBrokenError, SandboxBusy, SandboxLimit, TooManyAtOnce

ROOT: Final = Path(__file__).resolve().parents[2]
START_S: Final = 30.0
MOST_WAITING: Final = 16  # callers, of all owners
MOST_JOBS: Final = 500  # of one process, which is then replaced, to free the memory that its allocator kept
MOST_PER_OWNER: Final = 3  # one running job and two waiting
QUEUE_S: Final = 5.0  # longest wait of a caller for a worker
SLACK_S: Final = 10.0  # wall time beyond the CPU limit, for a busy machine and for rows of look-up tables
log = structlog.get_logger(__name__)


class Worker:
    """One worker process and the socket to it. Not thread-safe."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "dataplane.sandbox.worker", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                cwd="/",
                env={"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"},  # without our secrets
            )
        self._link = Connection(ours.detach())
        self._is_up = False
        self.jobs = 0

    @property
    def is_alive(self) -> bool:
        """True until the process has ended."""
        return self._process.poll() is None

    @property
    def pid(self) -> int:
        """Process id of the worker."""
        return self._process.pid

    def run(self, job: SandboxJob, cpu_s: float, rows: TableRows) -> Answer:
        """Run a job under a limit of CPU time, in seconds.

        Raises: SandboxLimit, SandboxBusy, SandboxBrokenError. The worker must not be used again after any of them.
        """
        self.jobs += 1
        try:
            self._wait_until_up()
            self._link.send_bytes(str(cpu_s).encode())
            self._link.send_bytes(encode(job))
            return self._answer(time.monotonic() + cpu_s + SLACK_S, cpu_s, rows)
        except (EOFError, OSError) as exc:
            raise self._why_it_ended(cpu_s) from exc

    def close(self) -> None:
        """Kill the process, also in the middle of a job."""
        self._link.close()
        self._process.kill()
        self._process.wait()

    def _answer(self, deadline_s: float, cpu_s: float, rows: TableRows) -> Answer:
        while self._link.poll(max(0.0, deadline_s - time.monotonic())):
            match decode_answer(self._link.recv_bytes(MOST_ANSWER_BYTES)):
                case NeedRow(table, key):
                    self._link.send_bytes(encode(_row(rows, table, key)))
                case JobOverLimit(what):
                    raise _over(what)
                case JobFailed(error):
                    raise SandboxBrokenError(error)
                case found:
                    answer: Answer = found
                    return answer
        raise SandboxBusy(f"The server is too busy to finish this within {cpu_s + SLACK_S:g} s. Try again later.")

    def _wait_until_up(self) -> None:
        if not self._is_up:
            if not self._link.poll(START_S):
                raise SandboxBusy("The server is too busy to start this. Try again later.")
            self._link.recv_bytes(100)
            self._is_up = True

    def _why_it_ended(self, cpu_s: float) -> Exception:
        code = self._process.wait()
        if code == -signal.SIGPROF:
            return SandboxLimit(f"This took more than {cpu_s:g} s of CPU time and was stopped.")
        if code in (-signal.SIGKILL, -signal.SIGABRT, -signal.SIGSEGV):
            return _over("memory")  # a C library aborted for lack of memory, or the kernel killed the process
        return SandboxBrokenError(f"the worker ended with {code}")


class _Ticket(NamedTuple):
    """Position of a caller in the queue."""

    owner: str
    number: int


class Pool:
    """Up to `size` workers. `run` raises SandboxLimit, SandboxBusy, TooManyAtOnce, SandboxBrokenError."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._idle: list[Worker] = []
        self._queue: list[_Ticket] = []
        self._running: Counter[str] = Counter()
        self._changed = threading.Condition()
        self._numbers = count()
        self.ended_by: Counter[str] = Counter()
        atexit.register(self.close)

    def run(self, job: SandboxJob, *, cpu_s: float, owner: str = "", rows: TableRows | None = None) -> Answer:
        """Run a job under a limit of CPU time. One job per owner runs at a time; other owners are served meanwhile."""
        with self._turn(owner):
            worker = self._take()
            try:
                found = worker.run(job, cpu_s, rows or EmptyTables())
            except BaseException as exc:
                self.ended_by[type(exc).__name__] += 1
                log.info("sandbox worker ended", reason=str(exc), owner=owner, pid=worker.pid)
                worker.close()
                raise
            self._give_back(worker)
            return found

    def warm(self) -> None:
        """Start a worker before the first job."""
        self._give_back(self._take())

    def close(self) -> None:
        """Kill all idle workers."""
        with self._changed:
            idle, self._idle = self._idle, []
        for worker in idle:
            worker.close()

    def _take(self) -> Worker:
        with self._changed:
            while self._idle:
                worker = self._idle.pop()
                if worker.is_alive:
                    return worker
                worker.close()
        return Worker()

    def _give_back(self, worker: Worker) -> None:
        if worker.jobs >= MOST_JOBS:
            worker.close()
            return
        with self._changed:
            self._idle.append(worker)

    @contextmanager
    def _turn(self, owner: str) -> Iterator[None]:
        """Wait for a free worker slot, first come first served, with at most one running job per owner."""
        with self._changed:
            ticket = self._enqueue(owner)
            is_mine = self._changed.wait_for(lambda: self._next() == ticket, QUEUE_S)
            self._queue.remove(ticket)
            self._running[owner] += is_mine
            self._changed.notify_all()
            if not is_mine:
                raise _busy()
        try:
            yield
        finally:
            with self._changed:
                self._running[owner] -= 1
                self._changed.notify_all()

    def _enqueue(self, owner: str) -> _Ticket:
        mine = self._running[owner] + sum(ticket.owner == owner for ticket in self._queue)
        if owner and mine >= MOST_PER_OWNER:
            raise TooManyAtOnce(f"You have {mine} of these requests in progress. Wait until one is done.")
        if len(self._queue) >= MOST_WAITING:
            raise _busy()
        ticket = _Ticket(owner, next(self._numbers))
        self._queue.append(ticket)
        return ticket

    def _next(self) -> _Ticket | None:
        """Return the first ticket whose owner has no running job; None without one, or without a free slot."""
        self._running += Counter()  # drops owners without running jobs
        if self._running.total() >= self._size:
            return None
        return next((one for one in self._queue if not one.owner or not self._running[one.owner]), None)


def _row(rows: TableRows, table: str, key: str) -> RowFound:
    try:
        return RowFound(msgspec.json.encode(rows.row(table, key)))
    except TableNotFoundError:
        return RowFound(b"null", is_table=False)


def _over(what: str) -> SandboxLimit:
    if what == "answer":
        megabytes = MOST_ANSWER_BYTES // 1024**2
        return SandboxLimit(f"The result is larger than {megabytes} MB. Try a smaller event, or fewer destinations.")
    return SandboxLimit(f"This needed more than {MEMORY_BYTES // 1024**2} MB of memory and was stopped.")


def _busy() -> SandboxBusy:
    return SandboxBusy("The server is busy with other dry runs. Try again in a few seconds.")
