"""Connection whose statements run in the current row scope (mgmt.tenancy.row_scope).

The scope is applied before the next statement after it has changed, in one round trip. The connection forgets what it
has applied when it is taken from the pool, and with each rollback, which also reverts settings. So no statement runs
in the scope of an earlier request.
"""

from collections.abc import Callable
from typing import Any, Final

from django.db.backends.postgresql.base import DatabaseWrapper as PostgresWrapper
from psycopg.pq import TransactionStatus

from mgmt.tenancy.row_scope import WEB_ROLE_SQL, RowScope, current_scope

_APPLY: Final = (
    f"SELECT set_config('role', CASE WHEN %s THEN {WEB_ROLE_SQL} ELSE 'none' END, false),"  # none: as signed in
    " set_config('penstock.tenants', %s, false)"
)


class DatabaseWrapper(PostgresWrapper):
    """Django's wrapper of a Postgres connection, with the row scope."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._applied_scope: RowScope | None = None  # None: unknown
        self.execute_wrappers.append(self._execute_in_scope)

    def init_connection_state(self) -> None:
        """Forget the scope: the connection is new, or another request has used it."""
        self._applied_scope = None
        super().init_connection_state()

    def create_cursor(self, name: str | None = None) -> Any:
        """Return a cursor in the scope, also for statements that pass no wrapper, such as COPY."""
        self._apply_scope()
        return super().create_cursor(name)

    def _commit(self) -> None:
        if self.connection is not None and self.connection.info.transaction_status == TransactionStatus.INERROR:
            self._applied_scope = None  # Postgres answers this commit with a rollback and reports success
        super()._commit()  # type: ignore[misc]

    def _rollback(self) -> None:
        self._applied_scope = None
        super()._rollback()  # type: ignore[misc]

    def _savepoint_rollback(self, sid: str) -> None:
        super()._savepoint_rollback(sid)  # type: ignore[misc]
        self._applied_scope = None

    def _execute_in_scope(
        self, execute: Callable[..., Any], sql: Any, params: Any, many: bool, context: dict[str, Any]
    ) -> Any:
        self._apply_scope()
        return execute(sql, params, many, context)

    def _apply_scope(self) -> None:
        scope = current_scope()
        # A failed transaction accepts only its rollback, which ends the scope, too.
        if scope != self._applied_scope and self.connection.info.transaction_status != TransactionStatus.INERROR:
            with self.wrap_database_errors:
                self.connection.execute(_APPLY, scope)
            self._applied_scope = scope
