"""Postgres advisory locks held for a session: one owner at a time, let go by Postgres itself when its owner dies.

A lock and not a conditional UPDATE, because what is guarded (Kafka's topics, a partition's cache) is not a row, and a
row that says "mine" outlives its owner.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import structlog
from django.db import DatabaseError, InterfaceError, OperationalError, connection

from mgmt.models import Tick

log = structlog.get_logger(__name__)


def try_lock(name: str) -> bool:
    """Take the lock called `name` without waiting; whether it is ours now. Each call counts."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(hashtextextended(%s, 0))", [name])
        (taken,) = cursor.fetchone()
    return bool(taken)


def unlock(name: str) -> None:
    """Give it back once."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_unlock(hashtextextended(%s, 0))", [name])


def unlock_all() -> None:
    """Give back all this connection holds, if it still works: it may return to a pool and be used by others."""
    if connection.connection is None:
        return
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_unlock_all()")
    except (DatabaseError, InterfaceError):
        return  # the connection is gone, and its locks with it


@contextmanager
def held(name: str) -> Iterator[bool]:
    """Try the lock; yields whether it is held, and gives it back at the end."""
    taken = try_lock(name)
    try:
        yield taken
    finally:
        if taken:
            unlock(name)


def alone(name: str, run: Callable[[], str]) -> str:
    """What `run` says it did, under the lock, or why not: a tick that overlaps skips, and none waits for Postgres.

    That the task so named was done is kept (mgmt.queries.ticks): one that skips or fails leaves no word, so one that
    hangs shows as silent, too.
    """
    try:
        with held(name) as ours:
            if not ours:
                return "skipped: another tick is at work"
            said = run()
            _keep(name, said)
            return said
    except (OperationalError, InterfaceError) as exc:
        log.warning("tick cut short", lock=name, reason=f"waiting for Postgres: {exc}")
        return "waiting for Postgres"


def _keep(name: str, said: str) -> None:
    row = Tick(task=name, at=datetime.now(UTC), said=said[:300])
    Tick.objects.bulk_create([row], update_conflicts=True, unique_fields=["task"], update_fields=["at", "said"])
