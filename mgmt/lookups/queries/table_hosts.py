"""Client of table queries (dataplane.table_queries): rows of look-up tables as the hosts of the data plane have them.

This is the only call from the management plane to the data plane. It reads, and nothing that runs depends on it.
"""

import time
from collections.abc import Iterator
from contextlib import closing, suppress
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Final, TypeVar
from urllib.parse import urlencode, urlsplit

import msgspec
import structlog
from django.conf import settings

from dataplane.tables.access_tokens import TableAccess, sign_access
from dataplane.tables.lookups import MAX_KEY_BYTES
from dataplane.tables.query_protocol import (
    QueryProblem,
    RowAnswer,
    RowPageAnswer,
    TableAnswer,
    hosts_for,
    row_path,
    rows_path,
    table_path,
)
from mgmt.models import LookupTable
from mgmt.sandbox import SandboxRefused

ANSWER_S: Final = 2.0  # for one host
MOST_ANSWER_BYTES: Final = 4 * 1024 * 1024
_TOKEN_S: Final = 60
_Answer = TypeVar("_Answer")
log = structlog.get_logger(__name__)


class TableUnreachable(SandboxRefused):
    """No host of the data plane serves queries of the table."""

    code = "table-unreachable"

    def __init__(self, table: LookupTable) -> None:
        where = f"look-up table {table.name} cannot be read"
        super().__init__(
            f"The rows of {where} now: a pipe writes them, so they are on the hosts of the data plane, and none of "
            "these hosts responds. Pipes are not affected. Try again in a few seconds."
            if settings.PENSTOCK_TABLES_HOSTS
            else f"The rows of {where} here: a pipe writes them, so they are on the hosts of the data plane, and this "
            "installation has no address of table queries. Pipes are not affected. Ask its operator for the address."
        )


def read_state(table: LookupTable) -> TableAnswer:
    """Return the number of rows, the last change and the lag of a host's copy. Raises TableUnreachable."""
    return _decoded(table, _get(table, "", table_path(table.id)), TableAnswer)


def read_row(table: LookupTable, key: str) -> RowAnswer | None:
    """Return a row; None if there is none. Raises TableUnreachable."""
    if not key or not _is_key(key):
        return None
    body = _get(table, key, row_path(table.id, key))
    return _decoded(table, body, RowAnswer) if body is not None else None


def read_rows(table: LookupTable, *, prefix: str = "", after: str = "", limit: int) -> RowPageAnswer:
    """Return up to `limit` rows whose keys start with `prefix` and follow `after`, in key order.

    Raises TableUnreachable.
    """
    if not _is_key(prefix) or not _is_key(after):
        return RowPageAnswer([], "")
    given = {"limit": limit, "prefix": prefix, "after": after}
    query = urlencode({name: value for name, value in given.items() if value})
    return _decoded(table, _get(table, after or prefix, f"{rows_path(table.id)}?{query}"), RowPageAnswer)


def read_all_rows(table: LookupTable, *, prefix: str = "") -> Iterator[RowAnswer]:
    """Yield every row whose key starts with `prefix`, in key order, page by page. Raises TableUnreachable."""
    after = ""
    while True:
        page = read_rows(table, prefix=prefix, after=after, limit=1_000)
        yield from page.rows
        if not page.after:
            return
        after = page.after


def _get(table: LookupTable, key: str, target: str) -> bytes | None:
    """Return the body of the first host that answers; None if it has no such row. Raises TableUnreachable."""
    until_s = int(time.time()) + _TOKEN_S
    token = sign_access(settings.PENSTOCK_FERNET_KEYS, TableAccess(table.tenant_id, table.id, table.name, until_s))
    for host in hosts_for(table.id, key, settings.PENSTOCK_TABLES_HOSTS):
        try:
            status, body = _ask(host, target, token)
        except (OSError, HTTPException) as exc:
            log.warning("table queries unreachable", host=host, reason=str(exc) or type(exc).__name__)
            continue
        if status == 200:
            return body
        problem = _problem(body)
        if status == 404 and problem == "row-not-found":
            return None
        log.warning("table query refused", host=host, status=status, reason=problem, table=table.id)
    raise TableUnreachable(table)


def _ask(host: str, target: str, token: str) -> tuple[int, bytes]:
    """Return status and body of a GET. Raises OSError, HTTPException."""
    url = urlsplit(host)
    kind = HTTPSConnection if url.scheme == "https" else HTTPConnection
    with closing(kind(url.hostname or "", url.port, timeout=ANSWER_S)) as connection:
        connection.request("GET", url.path.rstrip("/") + target, headers={"authorization": f"Bearer {token}"})
        answer = connection.getresponse()
        return answer.status, answer.read(MOST_ANSWER_BYTES)


def _decoded(table: LookupTable, body: bytes | None, kind: type[_Answer]) -> _Answer:
    try:
        return msgspec.json.decode(body or b"", type=kind)
    except msgspec.DecodeError as exc:  # not the service, or another release of it
        log.warning("table query returned an unknown body", table=table.id, reason=str(exc))
        raise TableUnreachable(table) from exc


def _problem(body: bytes) -> str:
    with suppress(msgspec.DecodeError):
        return msgspec.json.decode(body, type=QueryProblem).code
    return ""


def _is_key(key: str) -> bool:
    """Return True if a row can have this key, or a key with this prefix."""
    with suppress(UnicodeEncodeError):
        return len(key.encode()) <= MAX_KEY_BYTES and "\x00" not in key
    return False
