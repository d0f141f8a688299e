"""Parse the target of a table query strictly: table, key, prefix, cursor and limit. Pure."""

import re
from collections.abc import Sequence
from typing import Final, Literal
from urllib.parse import unquote_to_bytes

from msgspec import Struct

from dataplane.tables.lookups import MAX_KEY_BYTES
from dataplane.tables.query_protocol import DEFAULT_ROWS, MOST_ROWS, PATH

_TARGET: Final = re.compile(rb"%s/([a-z0-9_]{1,32})(?:/(changes)|/(rows)(?:/(.+))?)?" % PATH.encode())
_ESCAPES: Final = re.compile(rb"%(?![0-9A-Fa-f]{2})")
_PAGE_PARAMETERS: Final = (b"prefix", b"after", b"limit")
_CHANGE_PARAMETERS: Final = (b"key", b"prefix", b"from")
_POSITION: Final = re.compile(rb"([0-9a-f]{8})-([0-9]{1,19})")

TITLES: Final = {
    "not-found": "Not found",
    "row-not-found": "The table has no such row",
    "method-not-allowed": "Method not allowed",
    "key-invalid": "Key is not valid",
    "parameter-invalid": "Query parameter is not valid",
    "token-missing": "No access token",
    "token-invalid": "Access token is not valid",
    "table-not-allowed": "Access token is for another table",
    "too-many-streams": "Too many open streams",
    "not-ready": "The table has not reached this host yet",
    "internal": "Internal error",
}


class QueryRefusedError(Exception):
    """A request is refused. `code` is stable; `detail` says what was needed, without repeating the input."""

    def __init__(self, status: int, code: str, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.detail = detail


class TableQuery(Struct, frozen=True):
    """Request for the state of a table."""

    table: str


class RowQuery(Struct, frozen=True):
    """Request for one row."""

    table: str
    key: str


class PrefixQuery(Struct, frozen=True):
    """Request for the rows whose keys start with `prefix` and follow `after`."""

    table: str
    prefix: str
    after: str
    limit: int


class StreamPosition(Struct, frozen=True):
    """Position at which a stream continues: the next offset of the log with this id."""

    log: str
    offset: int


class ChangeQuery(Struct, frozen=True):
    """Request for the changes of a table: of one row (`key`), or of the rows whose keys start with `prefix`.

    start: "now", "snapshot" (the current rows first), or the position at which an earlier stream ended
    """

    table: str
    key: str | None
    prefix: str
    start: Literal["now", "snapshot"] | StreamPosition


AnyQuery = TableQuery | RowQuery | PrefixQuery | ChangeQuery


def parse_query(raw_path: bytes, query: bytes, last_event_id: bytes = b"") -> AnyQuery:
    """Return the request that an encoded path and query string name. Raises QueryRefusedError.

    last_event_id: header of that name, of a stream of changes
    """
    found = _TARGET.fullmatch(raw_path)
    if found is None:
        wanted = f"needs {PATH}/<table>, {PATH}/<table>/changes, {PATH}/<table>/rows or a key below it"
        raise QueryRefusedError(404, "not-found", wanted)
    table, changes, rows, key = found.groups()
    if changes:
        return _change_query(table.decode(), _parameters(query, _CHANGE_PARAMETERS), last_event_id)
    if key is not None:
        return RowQuery(table.decode(), _key(key, "the key", "key-invalid"))
    return _prefix_query(table.decode(), _parameters(query, _PAGE_PARAMETERS)) if rows else TableQuery(table.decode())


def _prefix_query(table: str, given: dict[bytes, bytes]) -> PrefixQuery:
    prefix = given.get(b"prefix", b"").replace(b"+", b"%20")
    after = given.get(b"after", b"").replace(b"+", b"%20")
    return PrefixQuery(
        table,
        _key(prefix, "prefix", "parameter-invalid") if prefix else "",
        _key(after, "after", "parameter-invalid") if after else "",
        _limit(given.get(b"limit", b"%d" % DEFAULT_ROWS)),
    )


def _change_query(table: str, given: dict[bytes, bytes], last_event_id: bytes) -> ChangeQuery:
    key, prefix = (given.get(name, b"").replace(b"+", b"%20") for name in (b"key", b"prefix"))
    if b"key" in given and (prefix or not key):
        raise QueryRefusedError(400, "parameter-invalid", "needs key or prefix, not both, and no empty key")
    return ChangeQuery(
        table,
        _key(key, "key", "parameter-invalid") if b"key" in given else None,
        _key(prefix, "prefix", "parameter-invalid") if prefix else "",
        _start(given.get(b"from", b"now"), last_event_id),
    )


def _start(text: bytes, last_event_id: bytes) -> Literal["now", "snapshot"] | StreamPosition:
    if last_event_id:
        found = _POSITION.fullmatch(last_event_id)
        if found is None:
            raise QueryRefusedError(
                400, "parameter-invalid", "Last-Event-ID: needs the id of an event of such a stream"
            )
        return StreamPosition(found[1].decode(), int(found[2]))
    if text == b"now":
        return "now"
    if text == b"snapshot":
        return "snapshot"
    raise QueryRefusedError(400, "parameter-invalid", "from: needs now or snapshot")


def _parameters(query: bytes, known: Sequence[bytes]) -> dict[bytes, bytes]:
    """Return the parameters, still encoded. Raises QueryRefusedError for an unknown or a repeated one."""
    given: dict[bytes, bytes] = {}
    for part in filter(None, query.split(b"&")):
        name, _, value = part.partition(b"=")
        if name not in known or name in given:
            names = b", ".join(known).decode()
            raise QueryRefusedError(400, "parameter-invalid", f"needs the parameters {names}, each at most once")
        given[name] = value
    return given


def _limit(text: bytes) -> int:
    if not (text.isdigit() and len(text) <= 4 and 1 <= int(text) <= MOST_ROWS):
        raise QueryRefusedError(400, "parameter-invalid", f"limit: needs a whole number from 1 to {MOST_ROWS}")
    return int(text)


def _key(encoded: bytes, what: str, code: str) -> str:
    """Return a percent-encoded key. Raises QueryRefusedError if no row can have it."""
    try:
        if _ESCAPES.search(encoded):
            raise ValueError("an incomplete escape")
        plain = unquote_to_bytes(encoded)
        key = plain.decode()
    except ValueError as exc:
        raise QueryRefusedError(400, code, f"{what}: needs percent-encoded UTF-8") from exc
    if len(plain) > MAX_KEY_BYTES or "\x00" in key:
        raise QueryRefusedError(400, code, f"{what}: needs at most {MAX_KEY_BYTES} bytes without U+0000")
    return key
