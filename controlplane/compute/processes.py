"""Finds and signals the processes of one incarnation of an application: the JVM, its Python driver, the workers.

They are identified by a variable in their environment, which children inherit: a pid may have been reused, and
PySpark's worker daemon leaves its parent's process group.
"""

import signal

import psutil

from controlplane.compute.releases import WORKER_DAEMON

INCARNATION_VARIABLE = "PENSTOCK_INCARNATION"
DAEMONS = ("pyspark.daemon", WORKER_DAEMON)


def members(incarnation: str) -> list[psutil.Process]:
    """Return all running processes of this incarnation."""
    return [process for process in psutil.process_iter() if _belongs(process, incarnation)]


def runs_python_workers(incarnation: str) -> bool:
    """Return True if Spark has begun a task of this incarnation on this host: the first one starts PySpark's daemon."""
    return any(is_worker_daemon(process) for process in members(incarnation))


def is_alive(pid: int, incarnation: str) -> bool:
    """Return True if the process with this pid runs and is one of this incarnation (a zombie does not run).

    Its start time would not identify it: psutil derives that from the system clock, which may be set.
    """
    try:
        return _belongs(psutil.Process(pid), incarnation)
    except psutil.Error:
        return False


def find_leader(incarnation: str) -> psutil.Process | None:
    """Return the process of an incarnation that started first, or None."""
    return min(members(incarnation), key=lambda process: process.create_time(), default=None)


def signal_all(processes: list[psutil.Process], number: signal.Signals) -> None:
    """Send a signal to each process that still exists."""
    for process in processes:
        try:
            process.send_signal(number)
        except psutil.Error:
            continue


def is_worker_daemon(process: psutil.Process) -> bool:
    """Return True for a daemon of Python workers, and for the workers that it forks.

    Whole words are compared: the command of spark-submit has the name of a daemon in a setting.
    """
    try:
        return any(word in DAEMONS for word in process.cmdline())
    except (psutil.Error, OSError):
        return False


def _belongs(process: psutil.Process, incarnation: str) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE and process.environ().get(INCARNATION_VARIABLE) == incarnation
    except (psutil.Error, OSError):
        return False
