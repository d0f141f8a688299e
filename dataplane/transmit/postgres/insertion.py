"""Insertion of a batch by one statement in one transaction, or of its halves, down to a row that is refused."""

from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

import psycopg
from msgspec.structs import replace
from psycopg import AsyncConnection, errors, sql

from dataplane.spec import PostgresDestination
from dataplane.transmit.http.sender import ResponsePart
from dataplane.transmit.policy.delivery_verdict import OK, DeliveryVerdict
from dataplane.transmit.policy.postgres_verdict import (
    DATABASE_REFUSED,
    RESET,
    ROW_REFUSED,
    judge_sqlstate,
    may_be_about_a_row,
    printable,
)
from dataplane.transmit.postgres.request import MAX_REFUSED

# A lane that is cut off before COMMIT must not leave rows locked. In a pipeline with BEGIN, Postgres 15 does not apply
# the second limit.
_BEGIN: Final = sql.SQL("BEGIN; SET LOCAL statement_timeout = {}; SET LOCAL idle_in_transaction_session_timeout = {}")
_SHOWN: Final = 60  # characters of a name, and twice as many of a text of the server


def statement_of(to: PostgresDestination) -> sql.Composed:
    """Return the statement that inserts a JSON array of rows. Every name is quoted; no text of a customer is SQL."""
    table, names = sql.Identifier(to.schema, to.table), _listed(to.columns)
    parts = [
        sql.SQL("INSERT INTO {} ({}) SELECT {}").format(table, names, names),
        sql.SQL("FROM pg_catalog.json_populate_recordset(NULL::{}, $1::json)").format(table),
    ]
    if to.key and to.ordered:
        new = [
            sql.SQL("{} = EXCLUDED.{}").format(sql.Identifier(name), sql.Identifier(name))
            for name in to.columns
            if name not in to.key
        ]
        parts.append(sql.SQL("ON CONFLICT ({}) DO UPDATE SET {}").format(_listed(to.key), sql.SQL(", ").join(new)))
    elif to.key:
        parts.append(sql.SQL("ON CONFLICT ({}) DO NOTHING").format(_listed(to.key)))
    return sql.SQL(" ").join(parts)


def _listed(names: Any) -> sql.Composed:
    return sql.SQL(", ").join(map(sql.Identifier, names))


class Insertion:
    """Insertion of one batch. `parts` grows as parts of it end, so that none is forgotten if the connection is lost."""

    def __init__(self, to: PostgresDestination, rows: Sequence[bytes], timeout_ms: int) -> None:
        self.parts: list[ResponsePart] = []
        self.loss = (RESET, "the connection was lost; the rows may be stored")
        self._statement, self._rows = statement_of(to), rows
        self._begin = _BEGIN.format(*[sql.Literal(timeout_ms)] * 2)
        self._waiting = deque([(0, len(rows))])
        self._refused = 0
        self._accepts_none = False  # the statement has succeeded without rows
        self._unsure: list[int] = []  # places in `parts` of rows whose error may be about the configuration

    async def run(self, link: AsyncConnection[Any]) -> None:
        """Insert all rows, or as many as the database accepts. If it accepts some, the others are to blame."""
        while self._waiting:
            start, end = self._waiting.popleft()
            try:
                await self._insert(link, b"[" + b",".join(self._rows[start:end]) + b"]")
            except psycopg.Error as exc:
                is_open = await _rolled_back(link)
                if is_open and await self._is_about_a_row(link, exc, end - start):
                    self._refuse(start, end, exc)
                else:
                    self.give_up(*self._judge(exc))
            else:
                self._refused = 0
                self.parts.append(ResponsePart(start, end, OK))
        if any(part.verdict is OK for part in self.parts):
            for place in self._unsure:
                self.parts[place] = replace(self.parts[place], verdict=ROW_REFUSED)

    def give_up(self, verdict: DeliveryVerdict, message: str) -> None:
        """End all rows that have no outcome yet."""
        done = self.parts[-1].end if self.parts else 0
        self._waiting.clear()
        if done < len(self._rows):
            self.parts.append(ResponsePart(done, len(self._rows), verdict, message))

    def _judge(self, exc: psycopg.Error) -> tuple[DeliveryVerdict, str]:
        """Return the outcome of an error that is not about a row. A row's error is lost with the connection."""
        verdict = _verdict_of(exc)
        if not exc.sqlstate or verdict is ROW_REFUSED:
            return self.loss
        return verdict, describe(exc, exc.sqlstate, verdict)

    def _refuse(self, start: int, end: int, exc: psycopg.Error) -> None:
        """End a row that was refused, or queue the halves of several."""
        if end - start > 1:
            middle = (start + end) // 2
            self._waiting.extendleft([(middle, end), (start, middle)])
            return
        verdict, message = _verdict_of(exc), describe(exc, exc.sqlstate or "", ROW_REFUSED)
        if verdict is not ROW_REFUSED:
            self._unsure.append(len(self.parts))
        self.parts.append(ResponsePart(start, end, verdict, message))
        self._refused += 1
        if self._refused >= MAX_REFUSED:
            self.give_up(DATABASE_REFUSED, f"{MAX_REFUSED} rows in a row are refused: {message}")

    async def _is_about_a_row(self, link: AsyncConnection[Any], exc: psycopg.Error, rows: int) -> bool:
        """Return True if a row causes the error: the statement succeeds without any, so its names and rights are good.

        Halves are not tested, because each ends in a test of a single row or succeeds.
        """
        if _verdict_of(exc) is ROW_REFUSED:
            return True
        if not may_be_about_a_row(exc.sqlstate or ""):
            return False
        if rows > 1 and self._accepts_none:
            return True
        try:
            await self._execute(link, b"[]")
        except psycopg.Error:
            return False
        finally:
            await _rolled_back(link)
        self._accepts_none = True
        return True

    async def _insert(self, link: AsyncConnection[Any], rows: bytes) -> None:
        """Run the transaction. COMMIT is sent only after the statement has answered.

        Otherwise a server that was stalled could commit after the retry, and an old row would replace a newer one.
        """
        await self._execute(link, rows)
        await link.execute("COMMIT")

    async def _execute(self, link: AsyncConnection[Any], rows: bytes) -> None:
        await link.execute(self._begin)
        await link.execute(self._statement, [rows.decode()])


async def _rolled_back(link: AsyncConnection[Any]) -> bool:
    """End the failed transaction. Returns False if the connection is lost."""
    try:
        await link.execute("ROLLBACK")
    except psycopg.Error:
        return False
    return True


def _verdict_of(exc: psycopg.Error) -> DeliveryVerdict:
    return judge_sqlstate(exc.sqlstate or "", exc.diag.source_function or "")


def describe(exc: psycopg.Error, sqlstate: str, verdict: DeliveryVerdict) -> str:
    """Return the SQLSTATE with its name and the names of the objects concerned.

    The server's text is added for an error of the configuration only: texts about rows quote their values, and those
    that a function raises may.
    """
    shown = [f"SQLSTATE {sqlstate}"]
    with suppress(KeyError):
        shown.append(errors.lookup(sqlstate).__name__)
    diag = exc.diag
    for kind, name in (("column", diag.column_name), ("constraint", diag.constraint_name)):
        if name:
            shown.append(f"{kind} {printable(name)[:_SHOWN]}")
    if verdict is DATABASE_REFUSED and not diag.context and diag.message_primary:
        shown.append(f"({printable(diag.message_primary)[: 2 * _SHOWN]})")
    return " ".join(shown)
