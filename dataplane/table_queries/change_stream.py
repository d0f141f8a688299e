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
            log = _log_of(pinned)
        self._next, self._removals_from = _beginning(query, log)
        # A row that changed between these positions has been sent in its current version, or was not asked for.
        self._sent_from = self._next if isinstance(query.start, StreamPosition) else 0
        self._sent_to = self._next
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
        self._next, size = found.next_position, 0
        for change in found.changes:
            if size >= TURN_BYTES:
                self._next = change.position
                break
            if self._is_sent(change):
                events.append(self._event(change, log))
                size += len(events[-1])
        self.sent += len(events)
        self.is_due = self._next <= last
        if not self.is_due:
            self._next = max(self._next, log.end)
            self._sent_to = self._next
            if not self._is_caught_up:
                self._is_caught_up = True
                events.append(self._id(self._next, log) + b"event: caught-up\ndata: {}\n\n")
        return b"".join(events)

    def heartbeat(self) -> bytes:
        """Return a comment and the position, which no client takes for an event. Raises QueryRefusedError."""
        with self._reader.pinned(self.access) as (pinned, _):
            return b": keep-alive\n" + self._id(self._next, _log_of(pinned)) + b"\n"

    def wake(self, last_change: int) -> None:
        """Note the position of the table's newest change."""
        self.is_due = self.is_due or last_change >= self._next

    def _is_sent(self, change: TableChange) -> bool:
        """Return False for a row that the stream has sent in this version, and for one removed before a snapshot.

        A client that continues may come from a host that had a row at its last record only, so that it has not got
        the row although it has changed before the client's position.
        """
        if self._sent_from <= change.changed < self._sent_to:
            return False
        return change.row is not None or change.changed >= self._removals_from

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
            is_new = change is not None and change.position >= self._next
            end = max(self._next, pinned.last_change(self.table) + 1)
            return TableChanges([change] if change is not None and is_new else [], end)
        return pinned.changes(
            self.table,
            prefix=self._query.prefix,
            first=self._next,
            most_rows=MOST_ROWS,
            most_bytes=TURN_BYTES,
            most_read=MOST_READ,
        )


def _log_of(pinned: PinnedTables) -> ChangeLog:
    log = pinned.change_log()
    if log is None:
        raise QueryRefusedError(503, "not-ready", "this host is reading the changes of its tables")
    return log


def _beginning(query: ChangeQuery, log: ChangeLog) -> tuple[int, int]:
    """Return the first position, and the one from which removed rows are sent.

    A stream of another log begins with all rows, and with the removed ones, which its client may still have.
    """
    match query.start:
        case "now":
            return log.end, 0
        case "snapshot":
            return 0, log.end
        case StreamPosition(log=name, offset=offset):
            return (log.base + offset if name == _name(log, query.table) else 0), 0


def _name(log: ChangeLog, table: str) -> str:
    """Return the name of a table's log in ids of events. A position in the log of another table is none in this one."""
    return f"{zlib.crc32(f'{log.topic_id}/{table}'.encode()) or 1:08x}"
