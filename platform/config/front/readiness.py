"""Readiness of the web process, with its own thread and database connection, as pages may use all others."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import psycopg

from mgmt.tenancy.row_scope import WEB_ROLE_SQL

ANSWER_S: Final = 3.0
FRESH_S: Final = 1.0
_STATEMENT_MS: Final = 2_000
# As each request does; the role has no rights after a restore without them. One implicit transaction.
_TAKE_ROLE: Final = f"SELECT set_config('role', {WEB_ROLE_SQL}, true); SELECT FROM mgmt_tenant LIMIT 0"  # noqa: S608


class Readiness:
    """Checks Postgres at most once a second, for any number of probes."""

    def __init__(self, database: dict[str, Any]) -> None:
        """`database`: an entry of Django's DATABASES."""
        names = {"host": "HOST", "port": "PORT", "dbname": "NAME", "user": "USER", "password": "PASSWORD"}
        self._address = {name: database[key] for name, key in names.items() if database.get(key)}
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="readiness")
        self._connection: psycopg.Connection[Any] | None = None
        self._probe_result: asyncio.Future[str] | None = None
        self._probed_s = 0.0

    async def why_not_ready(self) -> str:
        """Return why the process cannot serve pages now; "" if it can."""
        loop = asyncio.get_running_loop()
        if self._probe_result is None or (self._probe_result.done() and loop.time() - self._probed_s > FRESH_S):
            self._probe_result, self._probed_s = loop.run_in_executor(self._thread, self._probe), loop.time()
        try:
            return await asyncio.wait_for(asyncio.shield(self._probe_result), ANSWER_S)
        except TimeoutError:
            return "Postgres does not respond"

    def close(self) -> None:
        """Close the connection and end the thread."""
        self._thread.submit(self._drop)
        self._thread.shutdown(wait=False)

    def _probe(self) -> str:
        kept = self._connection is not None
        try:
            self._select()
        except (psycopg.DataError, psycopg.ProgrammingError) as exc:
            self._drop()
            return f"Requests cannot use the database: {str(exc).splitlines()[0]}. Run manage.py migrate"
        except psycopg.Error:
            self._drop()
            # A kept connection may be to a server that has restarted since.
            return self._probe() if kept else "Postgres does not respond"
        return ""

    def _select(self) -> None:
        if self._connection is None:
            options = f"-c statement_timeout={_STATEMENT_MS}"
            self._connection = psycopg.connect(
                **self._address, connect_timeout=2, autocommit=True, options=options, application_name="penstock-ready"
            )
        self._connection.execute(_TAKE_ROLE)

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
