"""Services of look-up tables and their rows. Each write raises the table's version under the lock of its row."""

import time
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, Final, Literal, NamedTuple

import structlog
from django.conf import settings
from django.db import IntegrityError, connection, transaction
from django.db.models import F, Q
from django.db.models.functions import Greatest
from django.utils import timezone

from dataplane.spec import PipeSpec, SpecError, TableDestination, TableSource, spec_to_builtins
from dataplane.spec.names import NAME_PATTERN
from dataplane.tables.access_tokens import LIFETIME_S, TableAccess, sign_access
from dataplane.tables.lookups import VERSIONS_PER_US
from dataplane.tables.query_protocol import table_path
from mgmt.audit.services import record
from mgmt.errors import (
    AccessNotOfferedError,
    InvalidValue,
    LimitReachedError,
    NameTakenError,
    TableInUseError,
    TableRemovedError,
)
from mgmt.lookups.loops import find_loop, merged, tables_of
from mgmt.lookups.queries.feeds import feeding, is_stream_fed, reading, revisions_reading_changes
from mgmt.lookups.row_files import NewRow, RowFileError
from mgmt.models import LookupRow, LookupTable, PipeRevision, Tenant, User

log = structlog.get_logger(__name__)

MAX_TABLES: Final = 100
MAX_ROWS: Final = 2_000_000
Mode = Literal["merge", "replace"]


def create_lookup_table(*, tenant: Tenant, name: str, by: User | None = None) -> LookupTable:
    """Create an empty table. Raises InvalidValue, NameTakenError, LimitReachedError."""
    if not NAME_PATTERN.search(name):
        raise InvalidValue("name", "needs 1-40 of a-z, 0-9 and '-', not '-' first")
    if LookupTable.objects.filter(tenant=tenant, state=LookupTable.State.LIVE).count() >= MAX_TABLES:
        raise LimitReachedError(f"A tenant may have {MAX_TABLES} look-up tables. Remove one first.")
    try:
        with transaction.atomic():
            table = LookupTable.objects.create(tenant=tenant, name=name)
            record(tenant=tenant, by=by, action="table.created", target=table)
    except IntegrityError as exc:
        raise NameTakenError(f"A look-up table named {name!r} exists in this tenant. Choose another name.") from exc
    log.info("look-up table created", tenant=tenant.id, table=table.id)
    return table


@transaction.atomic
def upload_rows(*, table: LookupTable, rows: Iterable[NewRow], mode: Mode, by: User | None = None) -> int:
    """Store all rows or none; return their number. `replace` also removes the rows that the upload does not contain.

    Raises RowFileError (also for a repeated key), LimitReachedError, TableRemovedError, TableInUseError, and the
    exceptions of the iterator `rows`.
    """
    _open_for_writes(table)
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE TEMPORARY TABLE uploaded (number bigint, key text NOT NULL, row text NOT NULL) ON COMMIT DROP"
        )
        with cursor.copy("COPY uploaded (number, key, row) FROM STDIN") as copy:
            for number, row in enumerate(rows, 1):
                if number > MAX_ROWS:
                    raise LimitReachedError(f"A look-up table may have {MAX_ROWS} rows.")
                copy.write_row(row)
        _refuse_duplicates(cursor)
        cursor.execute("SELECT count(*), coalesce(max(number), 0) FROM uploaded")
        count, highest = cursor.fetchone()
        removed = _remove_others(cursor, table) if mode == "replace" else 0
        base = _raise_version(table, by=highest) - highest
        cursor.execute(
            "INSERT INTO mgmt_lookuprow (table_id, key, version, row) SELECT %s, key, %s + number, row FROM uploaded "
            "ON CONFLICT (table_id, key) DO UPDATE SET version = excluded.version, row = excluded.row",
            [table.id, base],
        )
        cursor.execute("DROP TABLE uploaded")
    before, after = {"rows": table.row_count}, {"rows": _recount(table), "mode": mode, "uploaded": count}
    record(tenant=table.tenant_id, by=by, action="table.rows_uploaded", target=table, before=before, after=after)
    log.info("rows uploaded", tenant=table.tenant_id, table=table.id, rows=count, removed=removed)
    return int(count)


@transaction.atomic
def put_row(*, table: LookupTable, row: NewRow, by: User | None = None) -> bool:
    """Store one row; return True if its key is new. Raises LimitReachedError, TableRemovedError, TableInUseError."""
    _open_for_writes(table)
    version = _raise_version(table, by=1)
    known = LookupRow.objects.filter(table=table, key=row.key).values_list("row", flat=True).first()
    if known is None:
        _grow(table, 1)
    LookupRow.objects.update_or_create(table=table, key=row.key, defaults={"version": version, "row": row.text})
    record(tenant=table.tenant_id, by=by, action="table.row_set", target=table)
    return known is None


@transaction.atomic
def remove_row(*, table: LookupTable, key: str, by: User | None = None) -> None:
    """Remove one row; its removal is published.

    A table that a pipe has written may have the row only on the hosts, so the removal of any key is published there.
    Raises LookupRow.DoesNotExist, TableRemovedError, TableInUseError.
    """
    was_fed = _open_for_writes(table)
    version = _raise_version(table, by=1)
    if LookupRow.objects.filter(table=table, key=key, row__isnull=False).update(version=version, row=None):
        _grow(table, -1)
    elif was_fed:
        LookupRow.objects.update_or_create(table=table, key=key, defaults={"version": version, "row": None})
    else:
        raise LookupRow.DoesNotExist
    record(tenant=table.tenant_id, by=by, action="table.row_removed", target=table)


@transaction.atomic
def delete_lookup_table(*, table: LookupTable, by: User | None = None) -> None:
    """Delete the table and its rows. Raises TableInUseError while a live, ramping or requested revision uses it.

    Locks the row, as publishing a revision does, because no constraint reaches into a spec.
    """
    LookupTable.objects.select_for_update().get(id=table.id)
    if revision := _using(table, reading(table.name) | feeding(table.name)):
        raise TableInUseError(f"{revision} uses {table.name}. Publish a revision without it first.")
    _raise_version(table, by=1)
    LookupTable.objects.filter(id=table.id).update(state=LookupTable.State.REMOVED, row_count=0)
    record(tenant=table.tenant_id, by=by, action="table.deleted", target=table)
    log.info("look-up table removed", tenant=table.tenant_id, table=table.id)


def _using(table: LookupTable, condition: Q) -> PipeRevision | None:
    """Return the first live, ramping or requested revision of the tenant that matches the condition."""
    used = PipeRevision.objects.filter(condition, pipe__tenant_id=table.tenant_id, state__in=PipeRevision.IN_USE)
    return used.select_related("pipe").order_by("pipe__name", "-number").first()


def _open_for_writes(table: LookupTable) -> bool:
    """Return True if a pipe has written the table, whose versions then continue above those of the pipe's rows.

    Such a version is the time of an event, and hosts keep the row with the highest one. Raises TableInUseError while a
    pipe writes the table.
    """
    if revision := _using(table, feeding(table.name)):
        raise TableInUseError(f"{revision} writes the rows of {table.name}. Publish a revision without it first.")
    if not is_stream_fed(table):
        return False
    now_us = time.time_ns() // 1_000
    LookupTable.objects.filter(id=table.id).update(version=Greatest(F("version"), now_us * VERSIONS_PER_US))
    return True


class GrantedAccess(NamedTuple):
    """Access to the rows of one table: the URL of table queries, a token, and the time at which it expires."""

    url: str
    token: str
    expires_at: datetime


@transaction.atomic
def grant_table_access(*, table: LookupTable, now: datetime, by: User | None = None) -> GrantedAccess:
    """Return a token for table queries of this table. It is not stored and cannot be revoked, so it is short-lived.

    Raises AccessNotOfferedError if the installation has no public address of table queries.
    """
    if not settings.PENSTOCK_TABLES_URL:
        raise AccessNotOfferedError("This installation offers no direct access. Read rows through the API.")
    expires_at = now.replace(microsecond=0) + timedelta(seconds=LIFETIME_S)
    access = TableAccess(table.tenant_id, table.id, table.name, int(expires_at.timestamp()))
    token = sign_access(settings.PENSTOCK_FERNET_KEYS, access)
    after = {"expires_at": expires_at}
    record(tenant=table.tenant_id, by=by, action="table.access_granted", target=table, after=after)
    log.info("access to look-up table granted", tenant=table.tenant_id, table=table.id)
    return GrantedAccess(f"{settings.PENSTOCK_TABLES_URL}{table_path(table.id)}", token, expires_at)


def check_tables(tenant_id: str, spec: PipeSpec) -> None:
    """Lock the tables of a spec until the transaction ends. Raises SpecError for a table that the tenant lacks."""
    wanted = {
        to.table: f"$.destinations.{name}.table"
        for name, to in spec.destinations.items()
        if isinstance(to, TableDestination)
    }
    wanted |= {
        source.table: f"$.sources.{name}.table"
        for name, source in spec.sources.items()
        if isinstance(source, TableSource)
    }
    wanted |= {step.table: f"$.enrich[{number}].table" for number, step in reversed(list(enumerate(spec.enrich)))}
    if not wanted:
        return
    held = LookupTable.objects.select_for_update(no_key=True).filter(
        tenant_id=tenant_id, state=LookupTable.State.LIVE, name__in=wanted
    )
    missing = wanted.keys() - {table.name for table in held.order_by("id")}
    for name in sorted(missing, key=lambda name: wanted[name]):
        raise SpecError(wanted[name], f"needs one of your look-up tables, got {name}")


def check_table_loops(tenant_id: str, spec: PipeSpec, pipe_id: str = "") -> None:
    """Raise SpecError for a source of changes that the pipe itself would cause, directly or through other pipes.

    The caller holds the tenant's lock, so that two revisions cannot close a loop together. The pipe's other revisions
    that are live or to come count as this one, since both take events during the ramp.
    pipe_id: the pipe whose next revision it is, "" for a new one
    """
    own = tables_of("this pipe", spec_to_builtins(spec))
    if not own.reads:
        return
    linked = revisions_reading_changes(tenant_id)
    whole = merged(own, [tables for of_pipe, tables in linked if of_pipe == pipe_id])
    if loop := find_loop(whole, [tables for of_pipe, tables in linked if of_pipe != pipe_id]):
        sources = {one.table: name for name, one in spec.sources.items() if isinstance(one, TableSource)}
        source = sources.get(loop[0]) or next(iter(sources.values()))
        reason = f"needs a table that the pipe does not write, also not through other pipes: {' -> '.join(loop)}"
        raise SpecError(f"$.sources.{source}.table", reason)


def _raise_version(table: LookupTable, *, by: int) -> int:
    """Raise the table's version by `by` and return it. Raises TableRemovedError."""
    live = LookupTable.objects.filter(id=table.id, state=LookupTable.State.LIVE)
    if not live.update(version=F("version") + by, changed_at=timezone.now()):
        raise TableRemovedError("The look-up table was removed.")
    return int(LookupTable.objects.values_list("version", flat=True).get(id=table.id))


def _remove_others(cursor: Any, table: LookupTable) -> int:
    _raise_version(table, by=0)  # takes the lock
    cursor.execute(
        "SELECT id FROM mgmt_lookuprow r WHERE table_id = %s AND row IS NOT NULL "
        "AND NOT EXISTS (SELECT FROM uploaded u WHERE u.key = r.key)",
        [table.id],
    )
    gone = [id_ for (id_,) in cursor.fetchall()]
    if gone:
        base = _raise_version(table, by=len(gone)) - len(gone)
        cursor.execute(
            "UPDATE mgmt_lookuprow r SET row = NULL, version = %s + g.place "
            "FROM unnest(%s::bigint[]) WITH ORDINALITY AS g(id, place) WHERE r.id = g.id",
            [base, gone],
        )
    return len(gone)


def _refuse_duplicates(cursor: Any) -> None:
    cursor.execute("SELECT min(number), max(number) FROM uploaded GROUP BY key HAVING count(*) > 1 ORDER BY 2 LIMIT 1")
    if duplicate := cursor.fetchone():
        raise RowFileError(duplicate[1], f"has the same key as row {duplicate[0]}")


def _recount(table: LookupTable) -> int:
    count = LookupRow.objects.filter(table=table, row__isnull=False).count()
    if count > MAX_ROWS:
        raise LimitReachedError(f"A look-up table may have {MAX_ROWS} rows; with this upload it would have {count}.")
    LookupTable.objects.filter(id=table.id).update(row_count=count)
    return count


def _grow(table: LookupTable, by: int) -> None:
    grown = LookupTable.objects.filter(id=table.id, row_count__lte=MAX_ROWS - by)
    if not grown.update(row_count=F("row_count") + by):
        raise LimitReachedError(f"A look-up table may have {MAX_ROWS} rows.")
