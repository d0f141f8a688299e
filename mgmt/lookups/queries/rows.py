"""Rows of a look-up table by key, for pages, the API and dry runs: from where the lanes' copies come from.

Rows of a stream-fed table are read from a host of the data plane, those of any other table from Postgres.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from dataplane.stages.decoding import decode_json
from dataplane.stages.enrich import TableNotFoundError
from dataplane.tables.query_protocol import RowAnswer
from mgmt.ids import storable
from mgmt.lookups.queries import table_hosts
from mgmt.lookups.queries.feeds import is_stream_fed
from mgmt.models import LookupRow, LookupTable

PAGE: Final = 50


@dataclass(frozen=True)
class LookupRowLine:
    """A row: its object as JSON text. `changed_at`: None if it was entered before a pipe wrote the table."""

    key: str
    row: str
    version: str
    changed_at: datetime | None = None


@dataclass(frozen=True)
class LookupRowPage:
    """Rows in key order; `after` is the key after which the next page begins, "" on the last page."""

    rows: list[LookupRowLine]
    after: str = ""


def rows_of(table: LookupTable, *, begins: str = "", after: str = "", limit: int = PAGE) -> LookupRowPage:
    """Return a page of rows whose keys start with `begins` and follow the key `after`.

    Raises TableUnreachable for a stream-fed table while no host answers.
    """
    if is_stream_fed(table):
        page = table_hosts.read_rows(table, prefix=begins, after=after, limit=limit)
        return LookupRowPage([_line(row) for row in page.rows], page.after)
    found = LookupRow.objects.filter(table=table, row__isnull=False, key__startswith=storable(begins))
    rows = list(found.filter(key__gt=storable(after)).order_by("key")[: limit + 1])
    lines = [LookupRowLine(row.key, row.row or "", str(row.version)) for row in rows[:limit]]
    return LookupRowPage(lines, lines[-1].key if len(rows) > limit else "")


def all_rows(table: LookupTable, *, begins: str = "") -> Iterator[dict[str, str]]:
    """Return every row whose key starts with `begins` as key and JSON text, in key order; rows are read lazily.

    Raises TableUnreachable for a stream-fed table while no host answers, at the first row or at a later one.
    """
    if is_stream_fed(table):
        first = table_hosts.read_rows(table, prefix=begins, limit=1)  # refuse before the download begins
        return _from_host(table, begins) if first.rows or first.after else iter(())
    return _from_postgres(table, begins)


def row_line(table: LookupTable, key: str) -> LookupRowLine:
    """Return a row. Raises LookupRow.DoesNotExist, TableUnreachable."""
    if is_stream_fed(table):
        found = table_hosts.read_row(table, key)
        if found is None:
            raise LookupRow.DoesNotExist
        return _line(found)
    row = LookupRow.objects.get(table=table, key=storable(key), row__isnull=False)
    return LookupRowLine(row.key, row.row or "", str(row.version))


def row_text(table: LookupTable, key: str) -> str:
    """Return the row as indented JSON text. Raises LookupRow.DoesNotExist, TableUnreachable."""
    return json.dumps(json.loads(row_line(table, key).row), indent=2, ensure_ascii=False)


def _from_host(table: LookupTable, begins: str) -> Iterator[dict[str, str]]:
    for row in table_hosts.read_all_rows(table, prefix=begins):
        yield {"key": row.key, "row": bytes(row.row).decode()}


def _from_postgres(table: LookupTable, begins: str) -> Iterator[dict[str, str]]:
    found = LookupRow.objects.filter(table=table, row__isnull=False, key__startswith=storable(begins))
    for key, row in found.order_by("key").values_list("key", "row").iterator():
        yield {"key": key, "row": row or ""}


def _line(row: RowAnswer) -> LookupRowLine:
    changed_at = datetime.fromisoformat(row.changed_at) if row.changed_at else None
    return LookupRowLine(row.key, bytes(row.row).decode(), row.version, changed_at)


class TenantLookupRows:
    """Look-up tables of one tenant for dry runs (dataplane.stages.enrich.TableRows): rows as they are now."""

    def __init__(self, tenant_id: str) -> None:
        self._tables = LookupTable.objects.filter(tenant_id=tenant_id, state=LookupTable.State.LIVE)
        self._known: dict[str, tuple[LookupTable, bool]] = {}

    def row(self, table: str, key: str) -> Any:
        """Return the row; None if there is none. Raises TableNotFoundError, TableUnreachable."""
        found, is_fed = self._found(table)
        if is_fed:
            row = table_hosts.read_row(found, key)
            return None if row is None else decode_json(bytes(row.row))
        if "\x00" in key:
            return None  # no stored key contains NUL, and Postgres cannot compare it
        text = LookupRow.objects.filter(table=found, key=key).values_list("row", flat=True).first()
        return None if text is None else decode_json(text.encode())

    def _found(self, name: str) -> tuple[LookupTable, bool]:
        """Return the table, and True if it is stream-fed. Raises TableNotFoundError."""
        if name not in self._known:
            table = self._tables.filter(name=name).first()
            if table is None:
                raise TableNotFoundError(name)
            self._known[name] = table, is_stream_fed(table)
        return self._known[name]
