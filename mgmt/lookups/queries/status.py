"""Rows, last change and lag of look-up tables, and whether a host of the data plane responds."""

import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from mgmt.lookups.queries.feeds import is_stream_fed, stream_fed
from mgmt.lookups.queries.table_hosts import TableUnreachable, read_state
from mgmt.models import LookupTable

MOST_S: Final = 3.0  # for the figures of all tables of a list
SLOW: Final = "Figures of some look-up tables are missing: the hosts of the data plane respond slowly. Reload the page."


@dataclass(frozen=True)
class LookupTableStatus:
    """Figures of one table.

    rows:    None while they are being counted, or while no host answers
    lag_s:   seconds since the host last had every change of all tables; None if the table is not stream-fed
    problem: why there are no figures; "" if there are
    """

    stream_fed: bool
    rows: int | None
    changed_at: datetime | None
    lag_s: float | None = None
    problem: str = ""


def table_status(table: LookupTable) -> LookupTableStatus:
    """Return a table's figures. Raises TableUnreachable."""
    return _of_host(table) if is_stream_fed(table) else _of_postgres(table)


def shown_status(table: LookupTable) -> LookupTableStatus:
    """Return a table's figures for a page, which shows the reason if no host responds."""
    try:
        return table_status(table)
    except TableUnreachable as exc:
        return LookupTableStatus(True, None, None, None, str(exc))


def statuses_of(tables: Iterable[LookupTable]) -> dict[str, LookupTableStatus]:
    """Return the figures of several tables of one tenant by id.

    No host is asked again after the first failure, or once the answers have taken MOST_S together.
    """
    tables = list(tables)
    fed, problem = stream_fed(tables), ""
    until_s = time.monotonic() + MOST_S
    found = {}
    for table in tables:
        if table.id not in fed:
            found[table.id] = _of_postgres(table)
            continue
        if time.monotonic() > until_s:
            problem = problem or SLOW
        if not problem:
            try:
                found[table.id] = _of_host(table)
                continue
            except TableUnreachable as exc:
                problem = str(exc)
        found[table.id] = LookupTableStatus(True, None, None, None, problem)
    return found


def _of_host(table: LookupTable) -> LookupTableStatus:
    state = read_state(table)
    changed_at = datetime.fromisoformat(state.changed_at) if state.changed_at else None
    return LookupTableStatus(True, state.rows, changed_at, state.lag_s)


def _of_postgres(table: LookupTable) -> LookupTableStatus:
    return LookupTableStatus(False, table.row_count, table.changed_at)
