"""One stream of a table's changes as server-sent events: what to send next. No state but a position.

Each turn reads one pinned snapshot from the position on, within limits. A reader that is slow therefore holds the
bytes of a few turns and no queue: it gets the last value of each row that has changed meanwhile.
"""

import zlib
from typing import Final

import msgspec

from dataplane.table_queries.reader import TableReader
from dataplane.table_queries.requests import ChangeQuery, QueryRefusedError, StreamPosition
from dataplane.tables.access_tokens import TableAccess
from dataplane.tables.change_cursor import ChangeCursor
from dataplane.tables.pinned_tables import ChangeLog, PinnedTables, TableChange, TableChanges
from dataplane.tables.query_protocol import MOST_READ, MOST_ROWS, change_event

# Limit of the events of a turn, which the last one may exceed. The server holds about 13 turns of a client that reads
# nothing. An event may be six times as long as the row's key, whose control characters are escaped.
TURN_BYTES: Final = 32 * 1024
RETRY_MS: Final = 1_000
_BEGINNING: Final = b"id: 00000000-0\n"  # names no log
_encode = msgspec.json.Encoder().encode


class ChangeStream:
    """Changes of one table for the bearer of an access token."""

    def __init__(self, reader: TableReader, query: ChangeQuery, access: TableAccess) -> None:
        """Begin where the query says. Raises QueryRefusedError."""
        self._reader, self._query, self.access = reader, query, access
        with reader.pinned(access) as (pinned, _):
            self._cursor = _beginning(query, _log_of(pinned))
        self._is_caught_up = False
        self.is_due = True  # there may be changes to read
        self.sent = 0  # changes

    @property
    def table(self) -> str:
        """Return the id of the table."""
        return self._query.table

    def turn(self) -> bytes:
        """Return the next events, b"" if there are none. Raises QueryRefusedError when the stream has to end."""
        with self._reader.pinned(self.access) as (pinned, _):
            log = _log_of(pinned)
            found = self._read(pinned)
            last = pinned.last_change(self.table)
        events = list[bytes]()
        cursor, size = self._cursor, 0
        cursor.next = found.next_position
        for change in found.changes:
            if size >= TURN_BYTES:
                cursor.next = change.position
                break
            if cursor.wants(change):
                events.append(self._event(change, log))
                size += len(events[-1])
        self.sent += len(events)
        self.is_due = cursor.next <= last
        if not self.is_due:
            cursor.catch_up(log.end)
            if not self._is_caught_up:
                self._is_caught_up = True
                events.append(self._id(cursor.next, log) + b"event: caught-up\ndata: {}\n\n")
        return b"".join(events)

    def heartbeat(self) -> bytes:
        """Return a comment and the position, which no client takes for an event. Raises QueryRefusedError."""
        with self._reader.pinned(self.access) as (pinned, _):
            return b": keep-alive\n" + self._id(self._cursor.next, _log_of(pinned)) + b"\n"

    def wake(self, last_change: int) -> None:
        """Note the position of the table's newest change."""
        self.is_due = self.is_due or last_change >= self._cursor.next

    def _event(self, change: TableChange, log: ChangeLog) -> bytes:
        return self._id(change.position + 1, log) + b"data: " + _encode(change_event(change)) + b"\n\n"

    def _id(self, position: int, log: ChangeLog) -> bytes:
        """Return the line with a position. One of an earlier topic is different on each host: a stream begins again."""
        if position < log.base:
            return _BEGINNING
        return b"id: %b-%d\n" % (_name(log, self.table).encode(), position - log.base)

    def _read(self, pinned: PinnedTables) -> TableChanges:
        key = self._query.key
        if key is not None:
            change = pinned.change_of(self.table, key)
            is_new = change is not None and change.position >= self._cursor.next
            end = max(self._cursor.next, pinned.last_change(self.table) + 1)
            return TableChanges([change] if change is not None and is_new else [], end)
        return pinned.changes(
            self.table,
            prefix=self._query.prefix,
            first=self._cursor.next,
            most_rows=MOST_ROWS,
            most_bytes=TURN_BYTES,
            most_read=MOST_READ,
        )


def _log_of(pinned: PinnedTables) -> ChangeLog:
    log = pinned.change_log()
    if log is None:
        raise QueryRefusedError(503, "not-ready", "this host is reading the changes of its tables")
    return log


def _beginning(query: ChangeQuery, log: ChangeLog) -> ChangeCursor:
    match query.start:
        case "now":
            return ChangeCursor.now(log)
        case "snapshot":
            return ChangeCursor.snapshot(log)
        case StreamPosition(log=name, offset=offset) if name == _name(log, query.table):
            return ChangeCursor(log.base + offset, 0, continues=True)
    return ChangeCursor.again()


def _name(log: ChangeLog, table: str) -> str:
    """Return the name of a table's log in ids of events. A position in the log of another table is none in this one."""
    return f"{zlib.crc32(f'{log.topic_id}/{table}'.encode()) or 1:08x}"
