"""Rows of a look-up table by key, and the revisions that use the table."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from mgmt.models import LookupRow, LookupTable, PipeRevision

PAGE: Final = 50


@dataclass(frozen=True)
class LookupRowPage:
    """Rows in key order; `after` is the last key of the page, "" on the last page."""

    rows: list[LookupRow]
    after: str = ""


def rows_of(table: LookupTable, *, begins: str = "", after: str = "") -> LookupRowPage:
    """Return a page of rows whose keys start with `begins` and follow the key `after`."""
    found = LookupRow.objects.filter(table=table, row__isnull=False, key__startswith=_storable(begins))
    rows = list(found.filter(key__gt=_storable(after)).order_by("key")[: PAGE + 1])
    return LookupRowPage(rows[:PAGE], rows[PAGE - 1].key if len(rows) > PAGE else "")


def all_rows(table: LookupTable, *, begins: str = "") -> Iterator[dict[str, str]]:
    """Yield every row whose key starts with `begins` as key and JSON text, in key order; rows are read lazily."""
    found = LookupRow.objects.filter(table=table, row__isnull=False, key__startswith=_storable(begins))
    for key, row in found.order_by("key").values_list("key", "row").iterator():
        yield {"key": key, "row": row or ""}


def row_text(table: LookupTable, key: str) -> str:
    """Return the row as indented JSON text. Raises LookupRow.DoesNotExist."""
    text = LookupRow.objects.values_list("row", flat=True).get(table=table, key=_storable(key), row__isnull=False)
    return json.dumps(json.loads(text or "null"), indent=2, ensure_ascii=False)


def revisions_using(table: LookupTable) -> list[PipeRevision]:
    """Return the revisions, live or to come, that read the table."""
    found = PipeRevision.objects.filter(
        pipe__tenant_id=table.tenant_id, state__in=PipeRevision.IN_USE, spec__enrich__contains=[{"table": table.name}]
    )
    return list(found.select_related("pipe").order_by("pipe__name", "number"))


def _storable(text: str) -> str:
    return text.replace("\x00", "\ufffd")
