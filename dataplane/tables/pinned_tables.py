"""Snapshot of a host's look-up tables: tables, rows by key and by prefix, and figures, as of one moment."""

import struct
from typing import Any, Final, NamedTuple

import lmdb

from dataplane.stages.decoding import decode_json
from dataplane.tables.change_index import POSITION, change_key, entry_of, read_state
from dataplane.tables.lookup_stats import TableStats, read_stats
from dataplane.tables.lookups import SEPARATOR, TableRecord, decode_table, row_key, rows_prefix

VERSION: Final = struct.Struct(">Q")  # of a row: precedes its JSON text, which is empty if the row was removed
TOPIC_ID: Final = b"topic-id"
OFFSET: Final = b"offset"
_AFTER_POSITIONS: Final = b"\xff" * POSITION.size
STATS_OFFSET: Final = b"stats-offset"  # the offset that the figures in `stats` belong to


class StoredRow(NamedTuple):
    """A row as stored: its key, its version, and its object as JSON text."""

    key: str
    version: int
    row: bytes


class StoredRows(NamedTuple):
    """Rows in key order (of their UTF-8 bytes). `after`: the last key that was read, "" if no row follows."""

    rows: list[StoredRow]
    after: str


class TableChange(NamedTuple):
    """The last change of a row.

    position: of the last record of the row, which may repeat it
    changed:  position at which the row got this version
    row:      its object as JSON text, None if the row was removed
    """

    position: int
    changed: int
    key: str
    version: int
    row: bytes | None


class TableChanges(NamedTuple):
    """Changes in the order of their positions. `next_position`: where the next read begins."""

    changes: list[TableChange]
    next_position: int


class ChangeLog(NamedTuple):
    """The positions of this host: the topic they are offsets of, the position of its offset 0, and their end."""

    topic_id: str
    base: int
    end: int


class StoreDatabases(NamedTuple):
    """Databases of the store."""

    meta: Any
    tables: Any
    rows: Any
    stats: Any
    changes: Any
    entries: Any


class PinnedTables:
    """Snapshot of all tables at the time of `LookupStore.pin`."""

    def __init__(self, txn: Any, databases: StoreDatabases) -> None:
        self._txn = txn
        self._meta, self._tables, self._rows, self._stats, self._changes, self._entries = databases
        self._records: dict[tuple[str, str], TableRecord | None] = {}

    def table(self, tenant: str, name: str) -> TableRecord | None:
        """Return the newest table of that name, also a removed one; None if this host has none."""
        named = tenant, name
        if named not in self._records:
            value = self._txn.get(table_name(tenant, name), db=self._tables)
            self._records[named] = decode_table(value) if value is not None else None
        return self._records[named]

    def row(self, table: str, key: str) -> Any:
        """Return the row, newly decoded in each call; None if there is none."""
        try:
            value = self._txn.get(row_key(table, key), db=self._rows)
        except (lmdb.BadValsizeError, UnicodeEncodeError):
            return None  # longer than any row's key, or a lone surrogate: no row has such a key
        if value is None or len(value) == VERSION.size:
            return None
        return decode_json(value[VERSION.size :])

    def stored_row(self, table: str, key: str) -> StoredRow | None:
        """Return the row as stored; None if there is none. Raises UnicodeEncodeError for a lone surrogate."""
        value = self._txn.get(row_key(table, key), db=self._rows)
        if value is None or len(value) == VERSION.size:
            return None
        return _stored(key, value)

    def stored_rows(
        self, table: str, *, prefix: str, after: str, most_rows: int, most_bytes: int, most_read: int
    ) -> StoredRows:
        """Return the next rows whose keys start with `prefix` and follow `after` ("" for the first ones).

        `most_bytes`: limit of keys and rows together, which the last row may exceed. `most_read`: limit of the entries
        that are read, removed rows included, so that the result may be short, or empty, while rows follow.
        """
        begin, wanted = rows_prefix(table), row_key(table, prefix)
        found, read, size, last = list[StoredRow](), 0, 0, b""
        with self._txn.cursor(db=self._rows) as cursor:
            last_key = row_key(table, after)
            is_at_entry = cursor.set_range(max(wanted, last_key))
            if after and is_at_entry and cursor.key() == last_key:
                is_at_entry = cursor.next()
            while is_at_entry and cursor.key().startswith(wanted):
                if len(found) == most_rows or size >= most_bytes or read == most_read:
                    return StoredRows(found, last.decode())
                last, value, read = cursor.key()[len(begin) :], cursor.value(), read + 1
                if len(value) > VERSION.size:
                    found.append(_stored(last.decode(), value))
                    size += len(last) + len(value)
                is_at_entry = cursor.next()
        return StoredRows(found, "")

    def stats(self, table: str) -> TableStats | None:
        """Return the figures of a table; None while they are unknown."""
        if not has_stats(self._txn, self._meta):
            return None
        return read_stats(self._txn, self._stats, table.encode())

    def version(self, table: str, key: str) -> int:
        """Return the version of a row, also of a removed one; 0 if there never was one."""
        value = self._txn.get(row_key(table, key), db=self._rows)
        return int(VERSION.unpack_from(value)[0]) if value is not None else 0

    def change_log(self) -> ChangeLog | None:
        """Return the positions of changes; None while the index does not have every row of the store."""
        state = read_state(self._txn, self._meta)
        offset = self._txn.get(OFFSET, default=VERSION.pack(0), db=self._meta)
        topic_id = self._txn.get(TOPIC_ID, default=b"", db=self._meta).decode()
        is_current = state.topic == topic_id and VERSION.pack(state.offset) == offset
        if not is_current or state.offset < state.complete_at:
            return None
        return ChangeLog(state.topic, state.base, state.base + state.offset)

    def last_change(self, table: str) -> int:
        """Return the position of a table's newest change; -1 if it never had a row."""
        begin = rows_prefix(table)
        with self._txn.cursor(db=self._changes) as cursor:
            is_at_entry = cursor.prev() if cursor.set_range(begin + _AFTER_POSITIONS) else cursor.last()
            if not (is_at_entry and cursor.key().startswith(begin)):
                return -1
            return int(POSITION.unpack_from(cursor.key(), len(begin))[0])

    def change_of(self, table: str, key: str) -> TableChange | None:
        """Return the last change of one row; None if the row never existed."""
        row = row_key(table, key)
        position = entry_of(self._txn, self._entries, row)
        if position is None:
            return None
        changed = self._txn.get(change_key(row, position), db=self._changes)
        return self._change(position, changed, row, len(rows_prefix(table)))

    def changes(
        self, table: str, *, prefix: str, first: int, most_rows: int, most_bytes: int, most_read: int
    ) -> TableChanges:
        """Return the last changes of the rows whose keys start with `prefix`, from the position `first` on.

        most_bytes: limit of keys and rows together, which the last row may exceed
        most_read:  limit of the entries that are read
        """
        begin, wanted = rows_prefix(table), prefix.encode()
        row_begins = len(begin) + POSITION.size
        found, read, size = list[TableChange](), 0, 0
        with self._txn.cursor(db=self._changes) as cursor:
            is_at_entry = cursor.set_range(change_key(begin, first))
            while is_at_entry and (entry := cursor.key()).startswith(begin):
                position = int(POSITION.unpack_from(entry, len(begin))[0])
                if len(found) == most_rows or size >= most_bytes or read == most_read:
                    return TableChanges(found, position)
                read += 1
                if (row := entry[row_begins:]).startswith(wanted):
                    found.append(self._change(position, cursor.value(), begin + row, len(begin)))
                    size += len(row) + len(found[-1].row or b"")
                is_at_entry = cursor.next()
        return TableChanges(found, max(first, self.last_change(table) + 1))

    def _change(self, position: int, changed: bytes, row: bytes, key_begins: int) -> TableChange:
        value = self._txn.get(row, db=self._rows)
        version, body = VERSION.unpack_from(value)[0], value[VERSION.size :]
        return TableChange(position, POSITION.unpack(changed)[0], row[key_begins:].decode(), version, body or None)

    def close(self) -> None:
        """End the read transaction."""
        self._txn.abort()


def _stored(key: str, value: bytes) -> StoredRow:
    return StoredRow(key, VERSION.unpack_from(value)[0], value[VERSION.size :])


def has_stats(txn: Any, meta: Any) -> bool:
    """Return True if the figures of the tables belong to the store's offset."""
    known = txn.get(STATS_OFFSET, db=meta)
    return known is not None and known == txn.get(OFFSET, default=VERSION.pack(0), db=meta)


def count_rows(txn: Any, db: Any) -> dict[bytes, TableStats]:
    """Return the figures of every table, computed from the rows in `db`."""
    counted: dict[bytes, list[int]] = {}
    with txn.cursor(db=db) as cursor:
        for key, value in cursor:
            figures = counted.setdefault(key.partition(SEPARATOR)[0], [0, 0])
            figures[0] += len(value) > VERSION.size
            figures[1] = max(figures[1], VERSION.unpack_from(value)[0])
    return {table: TableStats(*figures) for table, figures in counted.items()}


def table_name(tenant: str, name: str) -> bytes:
    """Return the key of a table's record in the store."""
    return f"{tenant}/{name}".encode()
