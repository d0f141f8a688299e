"""Finding and signalling the processes of one incarnation of an application: the JVM, its Python driver, the workers.

They are known by a variable in their environment, which children inherit: a pid alone may have been used again, and
PySpark's worker daemon leaves the process group that it was born in.
"""

import signal

import psutil

INCARNATION_VARIABLE = "PENSTOCK_INCARNATION"


def members(incarnation: str) -> list[psutil.Process]:
    """Every process of this incarnation that still runs."""
    return [process for process in psutil.process_iter() if _belongs(process, incarnation)]


def runs_python_workers(incarnation: str) -> bool:
    """Whether Spark has begun a task of this incarnation on this host: its first one starts PySpark's daemon."""
    return any(_is_worker(process) for process in members(incarnation))


def created_at(pid: int) -> float:
    """When a process started, or 0 if it is gone."""
    try:
        return psutil.Process(pid).create_time()
    except psutil.Error:
        return 0.0


def is_alive(pid: int, created: float) -> bool:
    """Whether this very process runs (a zombie does not)."""
    try:
        process = psutil.Process(pid)
        return process.create_time() == created and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def find_leader(incarnation: str) -> psutil.Process | None:
    """The first process of an incarnation."""
    return min(members(incarnation), key=lambda process: process.create_time(), default=None)


def signal_all(processes: list[psutil.Process], number: signal.Signals) -> None:
    """Send a signal to each that is still there."""
    for process in processes:
        try:
            process.send_signal(number)
        except psutil.Error:
            continue


def _is_worker(process: psutil.Process) -> bool:
    try:
        return any("pyspark.daemon" in word for word in process.cmdline())
    except (psutil.Error, OSError):
        return False


def _belongs(process: psutil.Process, incarnation: str) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE and process.environ().get(INCARNATION_VARIABLE) == incarnation
    except (psutil.Error, OSError):
        return False
