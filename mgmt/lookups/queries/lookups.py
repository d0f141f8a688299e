"""Look-up tables for dry runs: the rows that are stored now, which hosts receive within seconds."""

from typing import Any

from dataplane.stages.decoding import decode_json
from dataplane.stages.enrich import TableNotFoundError
from mgmt.models import LookupRow, LookupTable


class StoredLookupRows:
    """Look-up tables of one tenant (dataplane.stages.enrich.TableRows)."""

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
