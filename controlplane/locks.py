"""Postgres advisory locks held by a session: one owner at a time, released by Postgres when its owner exits.

A lock instead of a conditional UPDATE, because the guarded resource (Kafka's topics, a partition's cache) is not a row,
and a row that names an owner outlives it.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Final

import structlog
from django.db import DatabaseError, InterfaceError, OperationalError, connection
from django.db.models import Case, F, Value, When

from mgmt.models import TaskRun

_Outcome = TaskRun.Outcome
NOTHING_TO_DO: Final = "nothing to do"
_SAVE: Final = """
INSERT INTO mgmt_tick AS known (task, at, outcome, since, said) VALUES (%s, %s, %s, %s, %s)
ON CONFLICT (task) DO UPDATE SET at = EXCLUDED.at, outcome = EXCLUDED.outcome, said = EXCLUDED.said,
    since = CASE WHEN known.outcome = EXCLUDED.outcome THEN known.since ELSE EXCLUDED.since END
"""
log = structlog.get_logger(__name__)


class TaskWaitingError(Exception):
    """The task can do nothing until another service responds; its text names the service."""


def try_lock(name: str) -> bool:
    """Take the lock called `name` without waiting; return True if it is ours now. Each success needs its own unlock."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(hashtextextended(%s, 0))", [name])
        (taken,) = cursor.fetchone()
    return bool(taken)


def unlock(name: str) -> None:
    """Release the lock called `name` once."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_unlock(hashtextextended(%s, 0))", [name])


def unlock_all() -> None:
    """Release all locks of this connection, if it still works: it may return to a pool and be used by others."""
    if connection.connection is None:
        return
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_unlock_all()")
    except (DatabaseError, InterfaceError):
        return  # the connection is gone, and its locks with it


@contextmanager
def held(name: str) -> Iterator[bool]:
    """Try the lock; yield True if it is held, and release it at the end."""
    taken = try_lock(name)
    try:
        yield taken
    finally:
        if taken:
            unlock(name)


def alone(name: str, run: Callable[[], str]) -> str:
    """Call `run` under the lock and return its summary, or return why it was not called.

    run: returns what it did, "" if there was nothing to do; raises TaskWaitingError if it can only wait

    A tick that overlaps another skips, and no tick waits for Postgres. The time and outcome of a finished run are
    stored, for mgmt.cells.queries.overdue_tasks and the status board. A run that skips stores nothing, and one that
    fails only its outcome, so that a hanging or failing task is shown as overdue.
    """
    try:
        with held(name) as ours:
            if not ours:
                return "skipped: another tick is running"
            return _run(name, run)
    except (OperationalError, InterfaceError) as exc:
        log.warning("tick cut short", lock=name, reason=f"waiting for Postgres: {exc}")
        return "waiting for Postgres"


def _run(name: str, run: Callable[[], str]) -> str:
    try:
        summary = run()
    except TaskWaitingError as exc:
        _store_run(name, _Outcome.WAITING, str(exc))
        return str(exc)
    except (OperationalError, InterfaceError):
        raise
    except Exception as exc:
        _store_failure(name, type(exc).__name__)
        raise
    _store_run(name, _Outcome.CHANGED if summary else _Outcome.NOTHING, summary or NOTHING_TO_DO)
    return summary or NOTHING_TO_DO


def _store_run(name: str, outcome: str, summary: str) -> None:
    now = datetime.now(UTC)
    with connection.cursor() as cursor:
        cursor.execute(_SAVE, [name, now, outcome, now, summary[:300]])


def _store_failure(name: str, error: str) -> None:
    """Store that the last run failed. Its text may contain data of customers, so only the kind of error is stored."""
    since = Case(When(outcome=_Outcome.FAILED, then=F("since")), default=Value(datetime.now(UTC)))
    try:
        TaskRun.objects.filter(task=name).update(outcome=_Outcome.FAILED, since=since, said=error)
    except DatabaseError as exc:  # the first error is raised and logged by the task's runner
        log.warning("failure not stored", lock=name, error=type(exc).__name__)
