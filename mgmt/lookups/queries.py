"""Rows of a look-up table by key, for pages and for dry runs, and the revisions that use the table."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from dataplane.stages.decoding import decode_json
from dataplane.stages.enrich import TableNotFoundError
from mgmt.ids import storable
from mgmt.models import LookupRow, LookupTable, PipeRevision

PAGE: Final = 50


@dataclass(frozen=True)
class LookupRowPage:
    """Rows in key order; `after` is the last key of the page, "" on the last page."""

    rows: list[LookupRow]
    after: str = ""


def rows_of(table: LookupTable, *, begins: str = "", after: str = "") -> LookupRowPage:
    """Return a page of rows whose keys start with `begins` and follow the key `after`."""
    found = LookupRow.objects.filter(table=table, row__isnull=False, key__startswith=storable(begins))
    rows = list(found.filter(key__gt=storable(after)).order_by("key")[: PAGE + 1])
    return LookupRowPage(rows[:PAGE], rows[PAGE - 1].key if len(rows) > PAGE else "")


def all_rows(table: LookupTable, *, begins: str = "") -> Iterator[dict[str, str]]:
    """Yield every row whose key starts with `begins` as key and JSON text, in key order; rows are read lazily."""
    found = LookupRow.objects.filter(table=table, row__isnull=False, key__startswith=storable(begins))
    for key, row in found.order_by("key").values_list("key", "row").iterator():
        yield {"key": key, "row": row or ""}


def row_text(table: LookupTable, key: str) -> str:
    """Return the row as indented JSON text. Raises LookupRow.DoesNotExist."""
    text = LookupRow.objects.values_list("row", flat=True).get(table=table, key=storable(key), row__isnull=False)
    return json.dumps(json.loads(text or "null"), indent=2, ensure_ascii=False)


def revisions_using(table: LookupTable) -> list[PipeRevision]:
    """Return the revisions, live or to come, that read the table."""
    found = PipeRevision.objects.filter(
        pipe__tenant_id=table.tenant_id, state__in=PipeRevision.IN_USE, spec__enrich__contains=[{"table": table.name}]
    )
    return list(found.select_related("pipe").order_by("pipe__name", "number"))


class StoredLookupRows:
    """Look-up tables of one tenant for dry runs (dataplane.stages.enrich.TableRows): the rows that are stored now."""

    def __init__(self, tenant_id: str) -> None:
        self._tables = LookupTable.objects.filter(tenant_id=tenant_id, state=LookupTable.State.LIVE)

    def row(self, table: str, key: str) -> Any:
        """Return the row; None if there is none. Raises TableNotFoundError."""
        found = self._tables.filter(name=table).values_list("id", flat=True).first()
        if found is None:
            raise TableNotFoundError(table)
        if "\x00" in key:
            return None  # no stored key contains NUL, and Postgres cannot compare it
        text = LookupRow.objects.filter(table_id=found, key=key).values_list("row", flat=True).first()
        return None if text is None else decode_json(text.encode())
