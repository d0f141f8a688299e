"""Look-up tables of this host on disk: an LMDB store, written by one replicator, read by every lane through mmap.

The topic's next offset is stored in the same transaction as the rows, so that reading resumes exactly there after the
store is opened. A pinned reader sees one consistent state, regardless of later writes. Several releases may share a
store, so a release may add databases and files, but never change the form of a stored value.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

import lmdb
import msgspec

from dataplane.tables.change_index import ChangeIndex, continued, read_state, store_offset, store_state
from dataplane.tables.lookup_stats import StatsBatch, replace_stats
from dataplane.tables.lookups import (
    SEPARATOR,
    TableRecord,
    decode_row,
    decode_table,
    encode_row,
    encode_table,
    is_row,
    rows_prefix,
)
from dataplane.tables.pinned_tables import (
    OFFSET,
    STATS_OFFSET,
    TOPIC_ID,
    VERSION,
    PinnedTables,
    StoreDatabases,
    count_rows,
    has_stats,
    table_name,
)

# Address space, not memory or disk: the file grows with its contents. Beyond it the keeper stops and reports it.
MAP_BYTES: Final = 64 * 1024**3
MAX_READERS: Final = 1_024
LOOKUPS: Final = "look-up tables on disk"
LOCK_BYTES: Final = 128 * 1024  # of LMDB's reader table: 64 for each reader, and its header
_CONFIRMED: Final = "confirmed"  # file whose modification time is that of the last confirmation


class LookupsFullError(Exception):
    """The map size is used up: nothing of the batch is stored, earlier rows can still be read."""


class StorePosition(NamedTuple):
    """Next offset to read of the topic with Kafka's id `topic_id` ("" at first)."""

    topic_id: str
    offset: int


class _Batch(NamedTuple):
    """Parts of one write transaction. `change_index`: None while the index of changes does not belong to the store."""

    txn: Any
    late: Any
    stats: StatsBatch
    change_index: ChangeIndex | None


class LookupStore:
    """LMDB store of look-up tables. One per process; open it after a fork, never before. Only the keeper writes."""

    def __init__(self, folder: Path, map_bytes: int = MAP_BYTES) -> None:
        """Open or create the store. Raises OSError if the disk is full, read-only or has failed."""
        folder.mkdir(parents=True, exist_ok=True)
        _reserve_locks(folder)
        self._confirmed = folder / _CONFIRMED
        with _as_os_error():
            self._env: Any = lmdb.open(str(folder), map_size=map_bytes, max_dbs=8, max_readers=MAX_READERS)
        try:
            with _as_os_error():
                self._env.reader_check()  # slots of readers that were killed
                self._meta: Any = self._env.open_db(b"meta")
                self._tables: Any = self._env.open_db(b"tables")
                self._rows: Any = self._env.open_db(b"rows")
                self._stats: Any = self._env.open_db(b"stats")
                self._changes: Any = self._env.open_db(b"changes")
                self._entries: Any = self._env.open_db(b"change-entries")
                self._late: Any = self._env.open_db(b"late-rows")  # keys of rows whose last record is a late one
        except OSError:
            self._env.close()
            raise

    def position(self) -> StorePosition:
        """Return the topic and offset at which reading continues."""
        with self._env.begin() as txn:
            return self._position(txn)

    def begin_topic(self, topic_id: str) -> None:
        """Set the position to the beginning of a new topic. Stored rows remain until they are replaced.

        Raises OSError.
        """
        with _as_os_error(), self._env.begin(db=self._meta, write=True) as txn:
            if has_stats(txn, self._meta):
                txn.put(STATS_OFFSET, VERSION.pack(0))
            txn.put(TOPIC_ID, topic_id.encode())
            txn.put(OFFSET, VERSION.pack(0))

    def apply(
        self, records: Sequence[tuple[bytes, bytes]], next_offset: int, offsets: Sequence[int] | None = None
    ) -> int:
        """Store records (key, value) of the topic and its next offset in one transaction; return how many were new.

        offsets: of the records, which grow; None if they are the ones right before `next_offset`
        Raises LookupsFullError or OSError; nothing is stored then.
        """
        at = range(next_offset - len(records), next_offset) if offsets is None else offsets
        try:
            with _as_os_error(), self._env.begin(write=True) as txn:
                batch = _Batch(txn, self._late, StatsBatch(txn, self._stats), self._index(txn))
                changed = sum(
                    self._apply_one(batch, *record, offset) for record, offset in zip(records, at, strict=True)
                )
                if has_stats(txn, self._meta):
                    batch.stats.store()
                    txn.put(STATS_OFFSET, VERSION.pack(next_offset), db=self._meta)
                if batch.change_index is not None:
                    store_offset(txn, self._meta, next_offset)
                txn.put(OFFSET, VERSION.pack(next_offset), db=self._meta)
                return changed
        except lmdb.MapFullError as exc:
            raise self._full() from exc

    def index_changes(self) -> StorePosition:
        """Continue the index of changes from now on; return the position at which to read the topic.

        That is an earlier one if a writer of an earlier release has stored rows since the index was written: they are
        read again, and only the index changes. Raises LookupsFullError or OSError; nothing is stored then.
        """
        try:
            with _as_os_error(), self._env.begin(write=True) as txn:
                topic_id, offset = self._position(txn)
                known = read_state(txn, self._meta)
                state = continued(known, topic_id, offset)
                if (state, state.offset) == (known, offset):
                    return StorePosition(topic_id, offset)
                store_state(txn, self._meta, state)
                if has_stats(txn, self._meta):  # figures of rows, which reading again does not change
                    txn.put(STATS_OFFSET, VERSION.pack(state.offset), db=self._meta)
                txn.put(OFFSET, VERSION.pack(state.offset), db=self._meta)
                return StorePosition(topic_id, state.offset)
        except lmdb.MapFullError as exc:
            raise self._full() from exc

    def recount(self) -> None:
        """Compute the figures of all tables from their rows, unless they are up to date.

        The rows are counted before the write transaction begins: a process that opens the store waits for the end of
        any write transaction. They do not change meanwhile, since only the keeper writes. Cost: about a second for a
        million rows. Raises LookupsFullError or OSError; nothing is stored then.
        """
        with _as_os_error(), self._env.begin() as txn:
            if has_stats(txn, self._meta):
                return
            offset = txn.get(OFFSET, default=VERSION.pack(0), db=self._meta)
            counted = count_rows(txn, self._rows)
        try:
            with _as_os_error(), self._env.begin(write=True) as txn:
                replace_stats(txn, self._stats, counted)
                txn.put(STATS_OFFSET, offset, db=self._meta)
        except lmdb.MapFullError as exc:
            raise self._full() from exc

    def late_rows(self, most: int) -> list[tuple[bytes, bytes]]:
        """Return records (key, value) of rows whose last record in the topic is older than one before it.

        Compaction would leave the older one. Rows whose newest version is not known to be of this topic are none.
        """
        with self._env.begin() as txn, txn.cursor(db=self._late) as cursor:
            keys = list(islice(cursor.iternext(values=False), most))
            values = [txn.get(key, db=self._rows) for key in keys]
        return [
            (key, encode_row(VERSION.unpack_from(value)[0], value[VERSION.size :] or None))
            for key, value in zip(keys, values, strict=True)
            if value is not None  # an earlier release has removed the table
        ]

    def confirm(self, at_us: int) -> None:
        """Note that the store has all records that the topic had at `at_us`. Raises OSError.

        A file's time, not a transaction: an idle host would otherwise sync its disk once a second.
        """
        self._confirmed.touch()
        os.utime(self._confirmed, ns=(at_us * 1_000, at_us * 1_000))

    def confirmed_us(self) -> int | None:
        """Return the time of the last confirmation, in microseconds since the epoch; None if there is none."""
        try:
            return self._confirmed.stat().st_mtime_ns // 1_000
        except OSError:
            return None

    def pin(self) -> PinnedTables:
        """Return the current state. Close it soon: overwritten pages stay on disk until then."""
        databases = StoreDatabases(self._meta, self._tables, self._rows, self._stats, self._changes, self._entries)
        return PinnedTables(self._env.begin(), databases)

    def forget_dead_readers(self) -> int:
        """Free the slots and pages of readers that were killed; return their number."""
        return int(self._env.reader_check())

    def close(self) -> None:
        """Unmap the store. Every PinnedTables must be closed before."""
        self._env.close()

    def _full(self) -> LookupsFullError:
        return LookupsFullError(f"look-up tables need more than {self._env.info()['map_size']} bytes")

    def _position(self, txn: Any) -> StorePosition:
        offset = txn.get(OFFSET, db=self._meta)
        topic_id = txn.get(TOPIC_ID, db=self._meta) or b""
        return StorePosition(topic_id.decode(), VERSION.unpack(offset)[0] if offset else 0)

    def _index(self, txn: Any) -> ChangeIndex | None:
        """Return the index of changes; None if it does not belong to the store's position (see `index_changes`)."""
        state = read_state(txn, self._meta)
        if (state.topic, state.offset) != self._position(txn):
            return None
        return ChangeIndex(txn, self._changes, self._entries, state.base)

    def _apply_one(self, batch: "_Batch", key: bytes, value: bytes, offset: int) -> bool:
        try:
            if is_row(key):
                return self._apply_row(batch, key, value, offset)
            return self._apply_table(batch, decode_table(value))
        except msgspec.DecodeError:
            return False  # from a newer release: release N skips records that only N+1 knows

    def _apply_row(self, batch: "_Batch", key: bytes, value: bytes, offset: int) -> bool:
        record = decode_row(value)
        known = batch.txn.get(key, db=self._rows)
        stored = VERSION.unpack_from(known)[0] if known is not None else -1
        if batch.change_index is not None:
            newest_at = batch.change_index.note(key, max(stored, record.version), offset)
            if stored <= record.version:
                batch.txn.delete(key, db=batch.late)
            elif newest_at is not None and newest_at < offset:
                batch.txn.put(key, b"", db=batch.late)
        if stored >= record.version:
            return False
        body = b"" if record.is_removed else bytes(record.row)
        batch.txn.put(key, VERSION.pack(record.version) + body, db=self._rows)
        was_live = known is not None and len(known) > VERSION.size
        table = key.partition(SEPARATOR)[0]
        batch.stats.note_row(table, was_live=was_live, is_live=not record.is_removed, version=record.version)
        return True

    def _apply_table(self, batch: "_Batch", record: TableRecord) -> bool:
        """Store a table's record. A name may be reused after the old table is removed; ids grow with time."""
        if record.state == "removed":
            self._purge(batch.txn, self._rows, record.table)
            self._purge(batch.txn, batch.late, record.table)
            batch.stats.drop(record.table.encode())
            if batch.change_index is not None:
                batch.change_index.purge(record.table)
        name = table_name(record.tenant, record.name)
        held = batch.txn.get(name, db=self._tables)
        if held is not None:
            known = decode_table(held)
            if (known.table, known.version) >= (record.table, record.version):
                return False
        batch.txn.put(name, encode_table(record), db=self._tables)
        return True

    def _purge(self, txn: Any, db: Any, table: str) -> None:
        prefix = rows_prefix(table)
        with txn.cursor(db=db) as cursor:
            found = cursor.set_range(prefix)
            while found and cursor.key().startswith(prefix):
                found = cursor.delete()


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


def lookup_folder(var: Path) -> Path:
    """Return the folder of a host's look-up tables."""
    return var / "data" / "lookups"
