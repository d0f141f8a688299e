"""Rows of a look-up table by key, and who looks the table up."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from mgmt.models import LookupRow, LookupTable, PipeRevision
from mgmt.services.lookups import IN_USE

PAGE: Final = 50


@dataclass(frozen=True)
class RowsPage:
    """Rows in the order of their keys; `after` is the key that the next page begins behind, "" at the end."""

    rows: list[LookupRow]
    after: str = ""


def rows_of(table: LookupTable, *, begins: str = "", after: str = "") -> RowsPage:
    """A page of rows whose keys begin so."""
    found = LookupRow.objects.filter(table=table, row__isnull=False, key__startswith=_storable(begins))
    rows = list(found.filter(key__gt=_storable(after)).order_by("key")[: PAGE + 1])
    return RowsPage(rows[:PAGE], rows[PAGE - 1].key if len(rows) > PAGE else "")


def all_rows(table: LookupTable, *, begins: str = "") -> Iterator[dict[str, str]]:
    """Every row whose key begins so, as key and JSON text, in the order of keys. They are read as they are taken."""
    found = LookupRow.objects.filter(table=table, row__isnull=False, key__startswith=_storable(begins))
    for key, row in found.order_by("key").values_list("key", "row").iterator():
        yield {"key": key, "row": row or ""}


def row_text(table: LookupTable, key: str) -> str:
    """The row as JSON text, with indents. Raises LookupRow.DoesNotExist."""
    text = LookupRow.objects.values_list("row", flat=True).get(table=table, key=_storable(key), row__isnull=False)
    return json.dumps(json.loads(text or "null"), indent=2, ensure_ascii=False)


def revisions_using(table: LookupTable) -> list[PipeRevision]:
    """The revisions that run, or will, and look the table up."""
    found = PipeRevision.objects.filter(
        pipe__tenant_id=table.tenant_id, state__in=IN_USE, spec__enrich__contains=[{"table": table.name}]
    )
    return list(found.select_related("pipe").order_by("pipe__name", "number"))


def _storable(text: str) -> str:
    return text.replace("\x00", "\ufffd")
