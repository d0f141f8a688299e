"""HTTP protocol of table queries: paths, limits, bodies of responses, and the hosts that have a key. Pure.

The service is `dataplane.table_queries`; the management plane is one of its clients.
"""

import zlib
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final, Literal
from urllib.parse import quote

from msgspec import Raw, Struct

from dataplane.tables.lookups import VERSIONS_PER_US
from dataplane.tables.pinned_tables import StoredRow, TableChange

PATH: Final = "/v1/tables"
MOST_ROWS: Final = 1_000  # of a response
DEFAULT_ROWS: Final = 100
MOST_BYTES: Final = 256 * 1024  # of the rows of a response, which the last row may exceed
MOST_READ: Final = 2_000  # entries that a request reads, removed rows included
MOST_STREAMS: Final = 1_000  # open streams of changes of a host
MOST_STREAMS_OF_TENANT: Final = 100
HEARTBEAT_S: Final = 15.0  # of a stream without changes
_FIRST_STREAMED: Final = 946_684_800_000_000 * VERSIONS_PER_US  # 2000-01-01; other rows are numbered from 1
_ONE_LINE: Final = bytes.maketrans(b"\r\n", b"  ")


class RowAnswer(Struct, frozen=True):
    """A row. `version` is text, since it exceeds the whole numbers that a double can hold.

    changed_at: when the row was written, in RFC 3339; None for a row that was entered before a pipe wrote the table
    """

    key: str
    row: Raw
    version: str
    changed_at: str | None


class RowPageAnswer(Struct, frozen=True):
    """Rows in key order. `after`: the next request's parameter of that name, "" on the last page."""

    rows: list[RowAnswer]
    after: str


class ChangeEvent(Struct, frozen=True):
    """Data of a server-sent event: a row that was written, or removed. `row`: None if it was removed."""

    key: str
    operation: Literal["upsert", "delete"]
    row: Raw | None
    version: str
    changed_at: str | None


class TableAnswer(Struct, frozen=True):
    """State of a host's copy of a table.

    rows:       number of rows; None while they are being counted
    changed_at: when the newest event that wrote or removed a row was received; None if there is none
    lag_s:      seconds since this host last had every record of the look-up topic
    """

    table: str
    rows: int | None
    changed_at: str | None
    lag_s: float


class QueryProblem(Struct, frozen=True):
    """Body of a refusal, as problem details (RFC 9457). It contains no key and no token."""

    status: int
    code: str
    title: str
    detail: str


def row_answer(found: StoredRow) -> RowAnswer:
    """Return a stored row as it is sent."""
    return RowAnswer(found.key, Raw(found.row), str(found.version), changed_at(found.version))


def change_event(change: TableChange) -> ChangeEvent:
    """Return a change as it is sent. The row is one line: in JSON, line breaks are only between values."""
    row = Raw(change.row.translate(_ONE_LINE)) if change.row is not None else None
    operation: Literal["upsert", "delete"] = "delete" if row is None else "upsert"
    return ChangeEvent(change.key, operation, row, str(change.version), changed_at(change.version))


def changed_at(version: int) -> str | None:
    """Return the time in a version of a row, in RFC 3339; None if no event wrote that version."""
    if version < _FIRST_STREAMED:
        return None
    return _rfc3339(version // VERSIONS_PER_US)


def hosts_for(table: str, key: str, hosts: Sequence[str]) -> list[str]:
    """Return the base URLs of the hosts that have the rows of a key, in the order in which to ask them.

    Every host has all rows of all tables, so this is each host once, beginning at one that depends on the key, to share
    the load. Routing by key belongs here as soon as a host has only a part of a table.
    """
    if not hosts:
        return []
    first = zlib.crc32(f"{table}/{key}".encode("utf-8", "replace")) % len(hosts)
    return [*hosts[first:], *hosts[:first]]


def table_path(table: str) -> str:
    """Return the path of a table's state."""
    return f"{PATH}/{table}"


def rows_path(table: str) -> str:
    """Return the path of a table's rows."""
    return f"{PATH}/{table}/rows"


def changes_path(table: str) -> str:
    """Return the path of the stream of a table's changes."""
    return f"{PATH}/{table}/changes"


def row_path(table: str, key: str) -> str:
    """Return the path of a row. Raises UnicodeEncodeError for a lone surrogate."""
    return f"{PATH}/{table}/rows/{quote(key, safe='', errors='strict')}"


def _rfc3339(at_us: int) -> str:
    at = datetime.fromtimestamp(at_us // 1_000_000, UTC).replace(microsecond=at_us % 1_000_000)
    return at.isoformat(timespec="microseconds").replace("+00:00", "Z")
