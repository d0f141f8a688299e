"""Read this host's look-up tables for the bearer of an access token. Each response reads one pinned snapshot."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import msgspec

from dataplane.runtime.lookups import Lookups
from dataplane.table_queries.requests import PrefixQuery, QueryRefusedError, RowQuery, TableQuery
from dataplane.tables.access_tokens import AccessRefusedError, TableAccess, read_access
from dataplane.tables.pinned_tables import PinnedTables
from dataplane.tables.query_protocol import (
    MOST_BYTES,
    MOST_READ,
    RowPageAnswer,
    TableAnswer,
    changed_at,
    row_answer,
)

BEARER: Final = "bearer"
_encode = msgspec.json.Encoder().encode


class TableReader:
    """Reader of the host's store. `clock` returns seconds since the epoch."""

    def __init__(self, lookups: Lookups, keys: Sequence[str], clock: Callable[[], float] = time.time) -> None:
        self._lookups, self._keys, self._clock = lookups, keys, clock

    @property
    def lag_s(self) -> float | None:
        """Seconds since the host last had every record of the look-up topic; None if it never had."""
        store = self._lookups.store
        confirmed_us = store.confirmed_us() if store is not None else None
        return None if confirmed_us is None else max(0.0, self._clock() - confirmed_us / 1e6)

    def read(self, query: TableQuery | RowQuery | PrefixQuery, authorization: bytes) -> bytes:
        """Return the response as JSON. Raises QueryRefusedError.

        The snapshot is closed before the answer is sent: no slow client keeps the store from reusing its pages.
        """
        with self.pinned(self.access(query.table, authorization)) as (pinned, lag_s):
            match query:
                case RowQuery():
                    return _row(pinned, query)
                case PrefixQuery():
                    return _rows(pinned, query)
                case TableQuery():
                    return _state(pinned, query, lag_s)

    @contextmanager
    def pinned(self, access: TableAccess) -> Iterator[tuple[PinnedTables, float]]:
        """Pin a snapshot that has the table of `access`; yield it and the lag. Raises QueryRefusedError."""
        if access.until_s <= self._clock():
            raise QueryRefusedError(401, "token-invalid", "the access token has expired: request a new one")
        store, lag_s = self._lookups.opened(), self.lag_s
        if store is None or lag_s is None:
            raise QueryRefusedError(503, "not-ready", "this host has not read the look-up topic to its end yet")
        pinned = store.pin()
        try:
            _check_table(pinned, access)
            yield pinned, lag_s
        finally:
            pinned.close()

    def last_changes(self, tables: Iterable[str]) -> dict[str, int]:
        """Return the position of each table's newest change; none while the store is closed."""
        store = self._lookups.opened()
        if store is None:
            return {}
        pinned = store.pin()
        try:
            return {table: pinned.last_change(table) for table in tables}
        finally:
            pinned.close()

    def access(self, table: str, authorization: bytes) -> TableAccess:
        """Return the claims of the bearer's token. Raises QueryRefusedError unless they permit to read `table`."""
        scheme, _, token = authorization.decode("latin-1").partition(" ")
        if scheme.lower() != BEARER or not token:
            raise QueryRefusedError(401, "token-missing", "needs the header Authorization: Bearer <access token>")
        try:
            access = read_access(self._keys, token.strip(), self._clock())
        except AccessRefusedError as exc:
            raise QueryRefusedError(401, "token-invalid", str(exc)) from exc
        if access.table != table:
            raise QueryRefusedError(403, "table-not-allowed", "needs an access token of this table")
        return access


def _check_table(pinned: PinnedTables, access: TableAccess) -> None:
    """Raise QueryRefusedError unless the tenant's table is on this host."""
    record = pinned.table(access.tenant, access.name)
    if record is None or record.table < access.table:  # ids grow with time: the host has an earlier table of the name
        raise QueryRefusedError(503, "not-ready", "this host has not received the table yet")
    if record.table != access.table or record.state == "removed":
        raise QueryRefusedError(404, "not-found", "the table was removed")


def _row(pinned: PinnedTables, query: RowQuery) -> bytes:
    found = pinned.stored_row(query.table, query.key)
    if found is None:
        raise QueryRefusedError(404, "row-not-found", "the table has no row with this key")
    return _encode(row_answer(found))


def _rows(pinned: PinnedTables, query: PrefixQuery) -> bytes:
    found = pinned.stored_rows(
        query.table,
        prefix=query.prefix,
        after=query.after,
        most_rows=query.limit,
        most_bytes=MOST_BYTES,
        most_read=MOST_READ,
    )
    return _encode(RowPageAnswer([row_answer(row) for row in found.rows], found.after))


def _state(pinned: PinnedTables, query: TableQuery, lag_s: float) -> bytes:
    stats = pinned.stats(query.table)
    if stats is None:
        return _encode(TableAnswer(query.table, None, None, round(lag_s, 3)))
    return _encode(TableAnswer(query.table, stats.rows, changed_at(stats.newest_version), round(lag_s, 3)))
