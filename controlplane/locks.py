"""Postgres advisory locks held by a session: one owner at a time, released by Postgres when its owner exits.

A lock instead of a conditional UPDATE, because the guarded resource (Kafka's topics, a partition's cache) is not a row,
and a row that names an owner outlives it.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import structlog
from django.db import DatabaseError, InterfaceError, OperationalError, connection

from mgmt.models import TaskRun

log = structlog.get_logger(__name__)


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

    A tick that overlaps another skips, and no tick waits for Postgres. The time of a finished run is stored, for
    mgmt.cells.queries.overdue_tasks. A run that skips or fails stores nothing, so a hanging task is shown as overdue.
    """
    try:
        with held(name) as ours:
            if not ours:
                return "skipped: another tick is at work"
            summary = run()
            _store_run(name, summary)
            return summary
    except (OperationalError, InterfaceError) as exc:
        log.warning("tick cut short", lock=name, reason=f"waiting for Postgres: {exc}")
        return "waiting for Postgres"


def _store_run(name: str, summary: str) -> None:
    row = TaskRun(task=name, at=datetime.now(UTC), said=summary[:300])
    TaskRun.objects.bulk_create([row], update_conflicts=True, unique_fields=["task"], update_fields=["at", "said"])
