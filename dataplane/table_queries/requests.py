"""Parse the target of a table query strictly: table, key, prefix, cursor and limit. Pure."""

import re
from typing import Final
from urllib.parse import unquote_to_bytes

from msgspec import Struct

from dataplane.tables.lookups import MAX_KEY_BYTES
from dataplane.tables.query_protocol import DEFAULT_ROWS, MOST_ROWS, PATH

_TARGET: Final = re.compile(rb"%s/([a-z0-9_]{1,32})(?:/(rows)(?:/(.+))?)?" % PATH.encode())
_ESCAPES: Final = re.compile(rb"%(?![0-9A-Fa-f]{2})")
_PARAMETERS: Final = (b"prefix", b"after", b"limit")

TITLES: Final = {
    "not-found": "Not found",
    "row-not-found": "The table has no such row",
    "method-not-allowed": "Method not allowed",
    "key-invalid": "Key is not valid",
    "parameter-invalid": "Query parameter is not valid",
    "token-missing": "No access token",
    "token-invalid": "Access token is not valid",
    "table-not-allowed": "Access token is for another table",
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


def parse_query(raw_path: bytes, query: bytes) -> TableQuery | RowQuery | PrefixQuery:
    """Return the request that an encoded path and query string name. Raises QueryRefusedError."""
    found = _TARGET.fullmatch(raw_path)
    if found is None:
        raise QueryRefusedError(404, "not-found", f"needs {PATH}/<table>, {PATH}/<table>/rows or a key below it")
    table, rows, key = found.groups()
    if key is not None:
        return RowQuery(table.decode(), _key(key, "the key", "key-invalid"))
    return _prefix_query(table.decode(), _parameters(query)) if rows else TableQuery(table.decode())


def _prefix_query(table: str, given: dict[bytes, bytes]) -> PrefixQuery:
    prefix = given.get(b"prefix", b"").replace(b"+", b"%20")
    after = given.get(b"after", b"").replace(b"+", b"%20")
    return PrefixQuery(
        table,
        _key(prefix, "prefix", "parameter-invalid") if prefix else "",
        _key(after, "after", "parameter-invalid") if after else "",
        _limit(given.get(b"limit", b"%d" % DEFAULT_ROWS)),
    )


def _parameters(query: bytes) -> dict[bytes, bytes]:
    """Return the parameters, still encoded. Raises QueryRefusedError for an unknown or a repeated one."""
    given: dict[bytes, bytes] = {}
    for part in filter(None, query.split(b"&")):
        name, _, value = part.partition(b"=")
        if name not in _PARAMETERS or name in given:
            raise QueryRefusedError(400, "parameter-invalid", "needs prefix, after and limit, each at most once")
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
