"""Look-up tables of this host on disk: an LMDB store, written by one replicator, read by every lane through mmap.

The topic's next offset is stored in the same transaction as the rows, so that reading resumes exactly there after the
store is opened. A pinned reader sees one consistent state, regardless of later writes.
"""

import os
import struct
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import lmdb
import msgspec

from dataplane.stages.decoding import decode_json
from dataplane.tables.lookups import (
    TableRecord,
    decode_row,
    decode_table,
    encode_table,
    is_row,
    row_key,
    rows_prefix,
)

# Address space, not memory or disk: the file grows with its contents. Beyond it the keeper stops and reports it.
MAP_BYTES: Final = 16 * 1024**3
MAX_READERS: Final = 1_024
LOOKUPS: Final = "look-up tables on disk"
LOCK_BYTES: Final = 128 * 1024  # of LMDB's reader table: 64 for each reader, and its header
_VERSION: Final = struct.Struct(">Q")
_OFFSET: Final = b"offset"
_TOPIC_ID: Final = b"topic-id"


class LookupsFullError(Exception):
    """The map size is used up: nothing of the batch is stored, earlier rows can still be read."""


class StorePosition(NamedTuple):
    """Next offset to read of the topic with Kafka's id `topic_id` ("" at first)."""

    topic_id: str
    offset: int


class LookupStore:
    """LMDB store of look-up tables. One per process; open it after a fork, never before. Only the keeper writes."""

    def __init__(self, folder: Path, map_bytes: int = MAP_BYTES) -> None:
        """Open or create the store. Raises OSError if the disk is full, read-only or has failed."""
        folder.mkdir(parents=True, exist_ok=True)
        _reserve_locks(folder)
        with _as_os_error():
            self._env: Any = lmdb.open(str(folder), map_size=map_bytes, max_dbs=3, max_readers=MAX_READERS)
        try:
            with _as_os_error():
                self._env.reader_check()  # slots of readers that were killed
                self._meta: Any = self._env.open_db(b"meta")
                self._tables: Any = self._env.open_db(b"tables")
                self._rows: Any = self._env.open_db(b"rows")
        except OSError:
            self._env.close()
            raise

    def position(self) -> StorePosition:
        """Return the topic and offset at which reading continues."""
        with self._env.begin(db=self._meta) as txn:
            offset = txn.get(_OFFSET)
            return StorePosition((txn.get(_TOPIC_ID) or b"").decode(), _VERSION.unpack(offset)[0] if offset else 0)

    def begin_topic(self, topic_id: str) -> None:
        """Set the position to the beginning of a new topic. Stored rows remain until they are replaced.

        Raises OSError.
        """
        with _as_os_error(), self._env.begin(db=self._meta, write=True) as txn:
            txn.put(_TOPIC_ID, topic_id.encode())
            txn.put(_OFFSET, _VERSION.pack(0))

    def apply(self, records: Iterable[tuple[bytes, bytes]], next_offset: int) -> int:
        """Store records (key, value) of the topic and its next offset in one transaction; return how many were new.

        Raises LookupsFullError or OSError; nothing is stored then.
        """
        try:
            with _as_os_error(), self._env.begin(write=True) as txn:
                changed = sum(self._apply_one(txn, key, value) for key, value in records)
                txn.put(_OFFSET, _VERSION.pack(next_offset), db=self._meta)
                return changed
        except lmdb.MapFullError as exc:
            raise LookupsFullError(f"look-up tables need more than {self._env.info()['map_size']} bytes") from exc

    def pin(self) -> "PinnedTables":
        """Return the current state. Close it soon: overwritten pages stay on disk until then."""
        return PinnedTables(self._env.begin(), self._tables, self._rows)

    def forget_dead_readers(self) -> int:
        """Free the slots and pages of readers that were killed; return their number."""
        return int(self._env.reader_check())

    def close(self) -> None:
        """Unmap the store. Every PinnedTables must be closed before."""
        self._env.close()

    def _apply_one(self, txn: Any, key: bytes, value: bytes) -> bool:
        try:
            if is_row(key):
                return self._apply_row(txn, key, value)
            return self._apply_table(txn, decode_table(value))
        except msgspec.DecodeError:
            return False  # from a newer release: release N skips records that only N+1 knows

    def _apply_row(self, txn: Any, key: bytes, value: bytes) -> bool:
        record = decode_row(value)
        known = txn.get(key, db=self._rows)
        if known is not None and _VERSION.unpack_from(known)[0] >= record.version:
            return False
        body = b"" if record.is_removed else bytes(record.row)
        txn.put(key, _VERSION.pack(record.version) + body, db=self._rows)
        return True

    def _apply_table(self, txn: Any, record: TableRecord) -> bool:
        """Store a table's record. A name may be reused after the old table is removed; ids grow with time."""
        if record.state == "removed":
            self._purge(txn, record.table)
        name = _table_name(record.tenant, record.name)
        held = txn.get(name, db=self._tables)
        if held is not None:
            known = decode_table(held)
            if (known.table, known.version) >= (record.table, record.version):
                return False
        txn.put(name, encode_table(record), db=self._tables)
        return True

    def _purge(self, txn: Any, table: str) -> None:
        prefix = rows_prefix(table)
        with txn.cursor(db=self._rows) as cursor:
            found = cursor.set_range(prefix)
            while found and cursor.key().startswith(prefix):
                found = cursor.delete()


class PinnedTables:
    """Snapshot of all tables at the time of `LookupStore.pin`."""

    def __init__(self, txn: Any, tables: Any, rows: Any) -> None:
        self._txn, self._tables, self._rows = txn, tables, rows
        self._records: dict[tuple[str, str], TableRecord | None] = {}

    def table(self, tenant: str, name: str) -> TableRecord | None:
        """Return the newest table of that name, also a removed one; None if this host has none."""
        named = tenant, name
        if named not in self._records:
            value = self._txn.get(_table_name(tenant, name), db=self._tables)
            self._records[named] = decode_table(value) if value is not None else None
        return self._records[named]

    def row(self, table: str, key: str) -> Any:
        """Return the row, newly decoded in each call; None if there is none."""
        try:
            value = self._txn.get(row_key(table, key), db=self._rows)
        except (lmdb.BadValsizeError, UnicodeEncodeError):
            return None  # longer than any row's key, or a lone surrogate: no row has such a key
        if value is None or len(value) == _VERSION.size:
            return None
        return decode_json(value[_VERSION.size :])

    def version(self, table: str, key: str) -> int:
        """Return the version of a row, also of a removed one; 0 if there never was one."""
        value = self._txn.get(row_key(table, key), db=self._rows)
        return int(_VERSION.unpack_from(value)[0]) if value is not None else 0

    def close(self) -> None:
        """End the read transaction."""
        self._txn.abort()


def _reserve_locks(folder: Path) -> None:
    """Allocate LMDB's reader table on disk before it is mapped. Raises OSError.

    An access to a page of a mapped file for which the disk has no space kills the process with SIGBUS.
    """
    handle = os.open(folder / "lock.mdb", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        os.posix_fallocate(handle, 0, LOCK_BYTES)
    finally:
        os.close(handle)


@contextmanager
def _as_os_error() -> Iterator[None]:
    """Turn LMDB's errors into OSError, except MapFullError, which is not an error of the disk."""
    try:
        yield
    except lmdb.MapFullError:
        raise
    except lmdb.Error as exc:
        raise OSError(str(exc)) from exc


def _table_name(tenant: str, name: str) -> bytes:
    return f"{tenant}/{name}".encode()


def lookup_folder(var: Path) -> Path:
    """Return the folder of a host's look-up tables."""
    return var / "data" / "lookups"
