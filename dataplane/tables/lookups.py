"""The records of the look-up topic: customers' tables and their rows, as the control plane publishes them.

A table's record has the table's id as its key, a row's `<table id>/<row key>`. Every record carries a version that
grows within its table; readers keep the highest. A removal is a record, never a tombstone.
"""

from typing import Final, Literal

import msgspec
from msgspec import Raw, Struct

MAX_KEY_BYTES: Final = 400  # LMDB takes keys of 511 bytes; a table's id and the separator come before it
MAX_ROW_BYTES: Final = 16 * 1024  # of a row as JSON
_SEPARATOR: Final = b"/"
_GONE: Final = b"null"


class TableRecord(Struct, frozen=True):
    """A table under its name. It is written after the rows that it is the newest version of.

    So whoever holds a table's record holds its rows up to `version`.
    """

    table: str
    version: int
    tenant: str
    name: str
    state: Literal["live", "removed"] = "live"


class RowRecord(Struct, frozen=True):
    """One row: an object as JSON text, or null where the row was removed."""

    version: int
    row: Raw

    @property
    def is_removed(self) -> bool:
        """Whether there is no such row any more."""
        return bytes(self.row) == _GONE


_tables = msgspec.json.Decoder(TableRecord)
_rows = msgspec.json.Decoder(RowRecord)
_encode = msgspec.json.Encoder().encode


def table_key(table: str) -> bytes:
    """The key of a table's record."""
    return table.encode()


def row_key(table: str, key: str) -> bytes:
    """The key of a row's record. Raises UnicodeEncodeError for half a character."""
    return table.encode() + _SEPARATOR + key.encode()


def rows_prefix(table: str) -> bytes:
    """What the keys of a table's rows begin with."""
    return table.encode() + _SEPARATOR


def is_row(key: bytes) -> bool:
    """Whether a record of this key is a row; else it is a table."""
    return _SEPARATOR in key


def encode_table(record: TableRecord) -> bytes:
    """The table's record as JSON."""
    return _encode(record)


def encode_row(version: int, row: bytes | None) -> bytes:
    """The record of a row, given as JSON text; None removes it."""
    return _encode(RowRecord(version, Raw(_GONE if row is None else row)))


def decode_table(value: bytes) -> TableRecord:
    """Raises msgspec.DecodeError if `value` is no table that this version understands."""
    return _tables.decode(value)


def decode_row(value: bytes) -> RowRecord:
    """Raises msgspec.DecodeError if `value` is no row that this version understands."""
    return _rows.decode(value)
