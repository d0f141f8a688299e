"""Index of the changes of each look-up table in a host's store: its rows in the order of their last records.

Each row has one entry, at the position of the last record of its key; a removed row keeps its entry. So the entries of
a table from the first one on are a snapshot of it, and those from any later position are the changes since, with the
last value of each row only. The topic itself, which has the rows of all tenants, is not read for that.

A record that repeats a row, or arrives after a newer one, is not a change. It moves the entry nevertheless: compaction
keeps the last record of a key only, so a host that reads the topic later knows no other position of the row. Since the
positions of all hosts are the same, a client that continues on another host misses nothing. The entry also has the
position at which the row got its current version (`changed`): a stream does not send again what it has sent.

A position is an offset of the look-up topic, plus the offsets of the topics that it has replaced (`base`): positions
grow also when the topic was recreated.

A writer of an earlier release does not know the index. Its offset is therefore stored with it, and a replicator that
finds another one reads the topic again from there (`LookupStore.index_changes`).
"""

import struct
from typing import Any, Final, NamedTuple

from dataplane.tables.lookups import SEPARATOR, rows_prefix

POSITION: Final = struct.Struct(">Q")
_ENTRY: Final = struct.Struct(">QQ")  # position and version of a row
_BASE: Final = b"changes-base"
_TOPIC: Final = b"changes-topic"
_OFFSET: Final = b"changes-offset"
_COMPLETE_AT: Final = b"changes-complete-at"  # offset up to which earlier releases have stored rows without the index


class IndexState(NamedTuple):
    """State of the index.

    topic:       id of the topic that it belongs to
    base:        position of the offset 0 of that topic
    offset:      next offset, up to which the index has every record
    complete_at: offset from which the index has every row of the store
    """

    topic: str = ""
    base: int = 0
    offset: int = 0
    complete_at: int = 0


class ChangeIndex:
    """The two databases of the index in one write transaction.

    changes: (table, position, row) -> position at which the row got its current version
    entries: row -> position and version
    """

    def __init__(self, txn: Any, changes: Any, entries: Any, base: int) -> None:
        self._txn, self._changes, self._entries, self._base = txn, changes, entries, base

    def note(self, key: bytes, version: int, offset: int) -> int | None:
        """Move a row's entry to the record at `offset`, after which the store has the row in this version.

        Return the offset in this topic of the record that gave the row the version; None if that is not known. An entry
        never moves back, although the topic may be read again. Cost: 4 us for a new row, 8 us for a known one.
        """
        position = self._base + offset
        changed = POSITION.pack(position)
        known = self._txn.get(key, db=self._entries)
        if known is not None:
            at, indexed = _ENTRY.unpack(known)
            if at >= position and indexed >= version:
                return None
            position = max(at, position)
            held = self._txn.pop(change_key(key, at), db=self._changes)
            changed = held if indexed >= version else POSITION.pack(position)
        self._txn.put(change_key(key, position), changed, db=self._changes)
        self._txn.put(key, _ENTRY.pack(position, version), db=self._entries)
        from_offset = int(POSITION.unpack(changed)[0]) - self._base
        return from_offset if from_offset >= 0 else None

    def purge(self, table: str) -> None:
        """Remove the entries of a removed table."""
        prefix = rows_prefix(table)
        for db in (self._changes, self._entries):
            with self._txn.cursor(db=db) as cursor:
                found = cursor.set_range(prefix)
                while found and cursor.key().startswith(prefix):
                    found = cursor.delete()


def read_state(txn: Any, meta: Any) -> IndexState:
    """Return the state of the index; that of an empty one if there is none."""
    numbers = (txn.get(name, db=meta) for name in (_BASE, _OFFSET, _COMPLETE_AT))
    base, offset, complete_at = (POSITION.unpack(number)[0] if number else 0 for number in numbers)
    return IndexState((txn.get(_TOPIC, db=meta) or b"").decode(), base, offset, complete_at)


def store_state(txn: Any, meta: Any, state: IndexState) -> None:
    """Store the state of the index."""
    txn.put(_TOPIC, state.topic.encode(), db=meta)
    for name, number in ((_BASE, state.base), (_OFFSET, state.offset), (_COMPLETE_AT, state.complete_at)):
        txn.put(name, POSITION.pack(number), db=meta)


def store_offset(txn: Any, meta: Any, offset: int) -> None:
    """Store the next offset of an index that has every record before it."""
    txn.put(_OFFSET, POSITION.pack(offset), db=meta)


def continued(state: IndexState, topic: str, offset: int) -> IndexState:
    """Return the state from which to index, for a store that has the records of `topic` before `offset`. Pure.

    Its `offset` is that from which the topic is to be read: an earlier one if a writer of an earlier release has stored
    records since.
    """
    if state.topic != topic:
        return IndexState(topic, state.base + state.offset, 0, offset)
    if state.offset >= offset:
        return state._replace(offset=offset)
    return state._replace(complete_at=max(state.complete_at, offset))


def change_key(key: bytes, position: int) -> bytes:
    """Return the key of a row's entry at a position; that of a table's first entry from there on for an empty row key.

    It contains the row: a log that lost its end gives the positions to other rows again.
    """
    table, _, row = key.partition(SEPARATOR)
    return table + SEPARATOR + POSITION.pack(position) + row


def entry_of(txn: Any, entries: Any, key: bytes) -> int | None:
    """Return the position of a row's last record; None if the row never existed."""
    known = txn.get(key, db=entries)
    return int(_ENTRY.unpack(known)[0]) if known is not None else None
