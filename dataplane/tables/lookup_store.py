"""Look-up tables of this host on disk: an LMDB store, written by one keeper, read by every lane through mmap.

The offset up to which the topic was read is stored in the transaction of the rows it brought, so that whoever opens the
store goes on exactly there. Readers see one state for as long as they are pinned, however much is written meanwhile.
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

# Address space, not memory and not disk: the file grows with what is stored. Beyond it the keeper stops and says so.
MAP_BYTES: Final = 16 * 1024**3
MAX_READERS: Final = 1_024
LOOKUPS: Final = "look-up tables on disk"
LOCK_BYTES: Final = 128 * 1024  # of LMDB's table of readers: 64 for each, and its head
_VERSION: Final = struct.Struct(">Q")
_OFFSET: Final = b"offset"
_TOPIC_ID: Final = b"topic-id"


class LookupsFullError(Exception):
    """The map size is used up: nothing of the batch is stored, what was stored before can be read."""


class Position(NamedTuple):
    """Where the store stands: the next offset to read of the topic with Kafka's id `topic_id` ("" at first)."""

    topic_id: str
    offset: int


class LookupStore:
    """One per process; open it after a fork, never before. Writing is for the keeper alone."""

    def __init__(self, folder: Path, map_bytes: int = MAP_BYTES) -> None:
        """Raises OSError if the disk does not take it, or has it no more."""
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

    def position(self) -> Position:
        """Where to go on reading."""
        with self._env.begin(db=self._meta) as txn:
            offset = txn.get(_OFFSET)
            return Position((txn.get(_TOPIC_ID) or b"").decode(), _VERSION.unpack(offset)[0] if offset else 0)

    def begin_topic(self, topic_id: str) -> None:
        """The topic is another one: read it from its beginning. What is known stays until it is replaced.

        Raises OSError.
        """
        with _as_os_error(), self._env.begin(db=self._meta, write=True) as txn:
            txn.put(_TOPIC_ID, topic_id.encode())
            txn.put(_OFFSET, _VERSION.pack(0))

    def apply(self, records: Iterable[tuple[bytes, bytes]], next_offset: int) -> int:
        """Store records (key, value) of the topic and where to go on, all or nothing; how many changed something.

        Raises LookupsFullError, OSError.
        """
        try:
            with _as_os_error(), self._env.begin(write=True) as txn:
                changed = sum(self._apply_one(txn, key, value) for key, value in records)
                txn.put(_OFFSET, _VERSION.pack(next_offset), db=self._meta)
                return changed
        except lmdb.MapFullError as exc:
            raise LookupsFullError(f"look-up tables need more than {self._env.info()['map_size']} bytes") from exc

    def pin(self) -> "Pinned":
        """The state as it is now. Let it go soon: what is overwritten is kept on disk for as long."""
        return Pinned(self._env.begin(), self._tables, self._rows)

    def forget_dead_readers(self) -> int:
        """Give back the slots of readers that were killed, and what the store keeps for them; how many there were."""
        return int(self._env.reader_check())

    def close(self) -> None:
        """Unmap. Whoever is pinned must have let go."""
        self._env.close()

    def _apply_one(self, txn: Any, key: bytes, value: bytes) -> bool:
        try:
            if is_row(key):
                return self._apply_row(txn, key, value)
            return self._apply_table(txn, decode_table(value))
        except msgspec.DecodeError:
            return False  # from a newer release: N reads past what only N+1 knows

    def _apply_row(self, txn: Any, key: bytes, value: bytes) -> bool:
        record = decode_row(value)
        known = txn.get(key, db=self._rows)
        if known is not None and _VERSION.unpack_from(known)[0] >= record.version:
            return False
        body = b"" if record.is_removed else bytes(record.row)
        txn.put(key, _VERSION.pack(record.version) + body, db=self._rows)
        return True

    def _apply_table(self, txn: Any, record: TableRecord) -> bool:
        """A name may be given to a new table once the old one is removed; ids grow with time."""
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


class Pinned:
    """All tables as they were when it was made."""

    def __init__(self, txn: Any, tables: Any, rows: Any) -> None:
        self._txn, self._tables, self._rows = txn, tables, rows
        self._records: dict[tuple[str, str], TableRecord | None] = {}

    def table(self, tenant: str, name: str) -> TableRecord | None:
        """The newest table of that name, be it removed; None if this host knows of none."""
        named = tenant, name
        if named not in self._records:
            value = self._txn.get(_table_name(tenant, name), db=self._tables)
            self._records[named] = decode_table(value) if value is not None else None
        return self._records[named]

    def row(self, table: str, key: str) -> Any:
        """The row, decoded anew for whoever asks; None if there is none."""
        try:
            value = self._txn.get(row_key(table, key), db=self._rows)
        except (lmdb.BadValsizeError, UnicodeEncodeError):
            return None  # longer than any row's key may be, or half a character: no row is so named
        if value is None or len(value) == _VERSION.size:
            return None
        return decode_json(value[_VERSION.size :])

    def version(self, table: str, key: str) -> int:
        """The version of a row, removed or not; 0 if there never was one."""
        value = self._txn.get(row_key(table, key), db=self._rows)
        return int(_VERSION.unpack_from(value)[0]) if value is not None else 0

    def close(self) -> None:
        """Let go."""
        self._txn.abort()


def _reserve_locks(folder: Path) -> None:
    """Have LMDB's table of readers on disk before it is mapped. Raises OSError.

    A page of a mapped file for which the disk has no room ends the process by SIGBUS when it is touched.
    """
    handle = os.open(folder / "lock.mdb", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        os.posix_fallocate(handle, 0, LOCK_BYTES)
    finally:
        os.close(handle)


@contextmanager
def _as_os_error() -> Iterator[None]:
    """What LMDB says of the disk, as what Python says of it. A map that is full is not the disk's fault."""
    try:
        yield
    except lmdb.MapFullError:
        raise
    except lmdb.Error as exc:
        raise OSError(str(exc)) from exc


def _table_name(tenant: str, name: str) -> bytes:
    return f"{tenant}/{name}".encode()


def lookup_folder(var: Path) -> Path:
    """Where a host's look-up tables lie."""
    return var / "data" / "lookups"
