"""Records of the look-up topic: tenants' tables and their rows.

A table's record has the table's id as its key, a row's `<table id>/<row key>`. Every record carries a version that
grows within its table; readers keep the highest. A removal is a record, never a tombstone.
"""

from typing import Final, Literal

import msgspec
from msgspec import Raw, Struct

MAX_KEY_BYTES: Final = 400  # LMDB allows 511 bytes; the table's id and the separator precede the key
MAX_ROW_BYTES: Final = 16 * 1024  # of a row as JSON
# Versions of rows that events write: the ingest time in microseconds times this, plus a part of the message's offset.
VERSIONS_PER_US: Final = 1 << 10
SEPARATOR: Final = b"/"  # between the table's id and the row's key
_GONE: Final = b"null"


class TableRecord(Struct, frozen=True):
    """A table under its name. It is written after its rows.

    So a reader that has a table's record also has its rows up to `version`.
    """

    table: str
    version: int
    tenant: str
    name: str
    state: Literal["live", "removed"] = "live"


class RowRecord(Struct, frozen=True):
    """One row: an object as JSON text, or null if the row was removed."""

    version: int
    row: Raw

    @property
    def is_removed(self) -> bool:
        """Return True if the record removes the row."""
        return bytes(self.row) == _GONE


_tables = msgspec.json.Decoder(TableRecord)
_rows = msgspec.json.Decoder(RowRecord)
_encode = msgspec.json.Encoder().encode


def table_key(table: str) -> bytes:
    """Return the key of a table's record."""
    return table.encode()


def row_key(table: str, key: str) -> bytes:
    """Return the key of a row's record. Raises UnicodeEncodeError for a lone surrogate."""
    return table.encode() + SEPARATOR + key.encode()


def rows_prefix(table: str) -> bytes:
    """Return the common prefix of the keys of a table's rows."""
    return table.encode() + SEPARATOR


def is_row(key: bytes) -> bool:
    """Return True if a record with this key is a row, False if it is a table."""
    return SEPARATOR in key


def encode_table(record: TableRecord) -> bytes:
    """Return the table's record as JSON."""
    return _encode(record)


def encode_row(version: int, row: bytes | None) -> bytes:
    """Return the record of a row given as JSON text, as JSON; None removes the row."""
    return _encode(RowRecord(version, Raw(_GONE if row is None else row)))


def decode_table(value: bytes) -> TableRecord:
    """Return the table in a record's value. Raises msgspec.DecodeError if this version cannot read it."""
    return _tables.decode(value)


def decode_row(value: bytes) -> RowRecord:
    """Return the row in a record's value. Raises msgspec.DecodeError if this version cannot read it."""
    return _rows.decode(value)
