"""Readers and writers of a look-up table: revisions that use its rows or changes, and destinations that feed it.

A table that a destination has ever fed is a *stream-fed* table: its rows are on the hosts of the data plane, and only
those that were entered manually are in Postgres, too.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
from django.db.models import BooleanField, F, Func, Q, QuerySet, Value

from mgmt.lookups.loops import PipeTables, table_names, tables_of
from mgmt.models import LookupTable, Pipe, PipeRevision

_ANY_TABLE = '$.destinations.* ? (@.type == "table")'
_THIS_TABLE = '$.destinations.* ? (@.type == "table" && @.table == $name)'
_ANY_CHANGES = '$.sources.* ? (@.type == "table")'
_THESE_CHANGES = '$.sources.* ? (@.type == "table" && @.table == $name)'


class TableFeed(NamedTuple):
    """Destination that writes a table."""

    pipe_id: str
    pipe_name: str
    destination: str


def revisions_using(table: LookupTable) -> list[PipeRevision]:
    """Return the revisions, live or to come, that read the table or its changes."""
    found = PipeRevision.objects.filter(
        reading(table.name), pipe__tenant_id=table.tenant_id, state__in=PipeRevision.IN_USE
    )
    return list(found.select_related("pipe").order_by("pipe__name", "number"))


def feeds_of(tables: Iterable[LookupTable]) -> Mapping[str, list[TableFeed]]:
    """Return the destinations of revisions, live or to come, that write each table, by the table's id."""
    by_name = {(table.tenant_id, table.name): table.id for table in tables}
    found: dict[str, set[TableFeed]] = defaultdict(set)
    if by_name:
        tenants = {tenant for tenant, _ in by_name}
        revisions = PipeRevision.objects.filter(
            _has_part(_ANY_TABLE), pipe__tenant_id__in=tenants, state__in=PipeRevision.IN_USE
        )
        rows = revisions.values_list("pipe__tenant_id", "pipe_id", "pipe__name", "spec__destinations")
        for tenant, pipe_id, pipe_name, destinations in rows:
            for name, to in destinations.items():
                table = by_name.get((tenant, to.get("table", ""))) if to.get("type") == "table" else None
                if table is not None:
                    found[table].add(TableFeed(pipe_id, pipe_name, name))
    return {table: sorted(feeds, key=lambda one: one[1:]) for table, feeds in found.items()}


def is_stream_fed(table: LookupTable) -> bool:
    """Return True if a destination writes the table, or may have written it since it was created."""
    counts = Q(state__in=PipeRevision.IN_USE) | Q(created_at__gte=table.created_at)
    return PipeRevision.objects.filter(counts, feeding(table.name), pipe__tenant_id=table.tenant_id).exists()


def stream_fed(tables: Sequence[LookupTable]) -> set[str]:
    """Return the ids of those tables that are stream-fed. The tables must be of one tenant.

    A revision counts if it was published since the table was created, also if it was retired meanwhile: its rows stay.
    """
    if not tables:
        return set()
    since = min(table.created_at for table in tables)
    current = Q(state__in=PipeRevision.IN_USE) | Q(created_at__gte=since)
    found = PipeRevision.objects.filter(current, _has_part(_ANY_TABLE), pipe__tenant_id=tables[0].tenant_id)
    rows = list(found.values_list("state", "created_at", "spec__destinations"))
    return {
        table.id
        for table in tables
        if any(
            (state in PipeRevision.IN_USE or created_at >= table.created_at) and table.name in table_names(destinations)
            for state, created_at, destinations in rows
        )
    }


def revisions_reading_changes(tenant_id: str) -> list[tuple[str, PipeTables]]:
    """Return each revision, live or to come, with a source of type table: its pipe's id, and its tables."""
    rows = _reading_any_changes(tenant_id).order_by("pipe__name", "number").values_list("pipe_id", "pipe__name", "spec")
    return [(pipe_id, tables_of(name, spec)) for pipe_id, name, spec in rows]


def table_sources_in(tenant_id: str, *, but: str = "") -> int:
    """Return the number of sources of type table of the revisions, live or to come, of pipes that are not closed.

    but: id of a pipe to leave out
    """
    found = _reading_any_changes(tenant_id)
    rows = found.exclude(pipe_id=but).exclude(pipe__state=Pipe.State.CLOSED).values_list("pipe_id", "spec__sources")
    named = {(pipe, name) for pipe, sources in rows for name, one in sources.items() if one.get("type") == "table"}
    return len(named)


def _reading_any_changes(tenant_id: str) -> QuerySet[PipeRevision]:
    current = PipeRevision.objects.filter(pipe__tenant_id=tenant_id, state__in=PipeRevision.IN_USE)
    return current.filter(_has_part(_ANY_CHANGES))


def reading(table: str) -> Q:
    """Return the condition that a revision's spec enriches from the table with this name, or reads its changes."""
    return Q(spec__enrich__contains=[{"table": table}]) | _has_part(_THESE_CHANGES, name=table)


def feeding(table: str) -> Q:
    """Return the condition that a revision's spec has a destination of the table with this name."""
    return _has_part(_THIS_TABLE, name=table)


def _has_part(path: str, **variables: Any) -> Q:
    named = Value(msgspec.json.encode(variables).decode())
    return Q(Func(F("spec"), Value(path), named, function="jsonb_path_exists", output_field=BooleanField()))
