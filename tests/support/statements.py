"""Actions in the middle of an operation: before one of the statements that it sends to Postgres."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import psycopg
from django.db import connection


@contextmanager
def before(statement: int, action: Callable[[], object], *, after: str = "") -> Iterator[None]:
    """Run the action before our connection's statement of that number.

    `after`: the table whose first change precedes the counting of statements.
    """
    counted = -1 if after else 0

    def wrapper(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        nonlocal counted
        if counted == statement:
            action()
        if counted >= 0 or (f'"{after}"' in sql and not sql.startswith("SELECT")):
            counted += 1
        return execute(sql, params, many, context)

    with connection.execute_wrapper(wrapper):
        yield


@contextmanager
def meanwhile(statement: int, action: Callable[[], object], *, after: str) -> Iterator[None]:
    """Run the action on another connection before ours sends its statement of that number (see `before`)."""

    def elsewhere() -> None:
        action()
        connection.close()

    with ThreadPoolExecutor(1) as other, before(statement, lambda: other.submit(elsewhere).result(), after=after):
        yield


def hang_up() -> None:
    """Close our connection for good: its session settings must not come back from the pool."""
    if connection.connection is not None:
        connection.connection.close()
    connection.close()


class Killer:
    """Killer of our Postgres connection from another one, as if its process had died there."""

    def __init__(self) -> None:
        known = connection.get_connection_params()
        place = {name: known[name] for name in ("host", "port", "dbname", "user", "password") if name in known}
        self._other = psycopg.connect(**place, autocommit=True)

    def kill(self) -> None:
        """Terminate our backend: the next statement fails."""
        self._other.execute("SELECT pg_terminate_backend(%s)", [connection.connection.info.backend_pid])

    def close(self) -> None:
        """Close the other connection."""
        self._other.close()
