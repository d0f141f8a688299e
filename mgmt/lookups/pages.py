"""Look-up tables: list, rows, upload and deletion."""

import json
from collections.abc import Mapping
from functools import partial
from typing import Any, Final, cast
from urllib.parse import urlencode

from django.conf import settings
from django.contrib import messages
from django.core.files.uploadedfile import UploadedFile
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.views.decorators.csrf import csrf_exempt, csrf_protect
from django.views.decorators.http import require_http_methods, require_POST

from dataplane.tables.query_protocol import changes_path, row_path
from mgmt import services
from mgmt.lookups.queries.feeds import feeds_of, revisions_using
from mgmt.lookups.queries.rows import LookupRowLine, LookupRowPage, all_rows, row_line, row_text, rows_of
from mgmt.lookups.queries.status import LookupTableStatus, shown_status, statuses_of
from mgmt.lookups.queries.table_hosts import TableUnreachable
from mgmt.lookups.row_files import RowFileError, UploadTooLarge, checked_row, read_rows
from mgmt.lookups.services import Mode
from mgmt.models import LookupRow, LookupTable, Tenant
from mgmt.web import access
from mgmt.web.export import KINDS, export
from mgmt.web.rendering import as_curl, for_members, once, selected_tenant, show, viewer_of
from mgmt.web.snippets import changes_curl, row_curl

_COLUMNS: Final = ("id", "name", "row_count", "progress", "changed_at")
_MODES: Final = ("merge", "replace")


@for_members
@require_http_methods(["GET", "POST"])
def tables(request: HttpRequest) -> HttpResponseBase:
    """List the tenant's tables; `format` exports them, a POST creates one."""
    chosen = selected_tenant(request)
    if request.method != "POST":
        return _list(request, chosen)
    tenant = access.get_tenant(viewer_of(request), chosen.id, access.CHANGE_LOOKUPS)
    name = request.POST.get("name", "").strip()
    try:
        table = services.create_lookup_table(tenant=tenant, name=name, by=viewer_of(request))
    except services.InvalidValue as exc:
        return _list(request, tenant, typed=name, error=exc.reason)
    except services.ServiceError as exc:
        return _list(request, tenant, typed=name, error=str(exc))
    return redirect("console:table", table.id)


@for_members
@require_http_methods(["GET", "POST"])
def table(request: HttpRequest, table_id: str) -> HttpResponseBase:
    """Show one table: its feeds, users and rows; `key` looks one up, `format` exports them, a POST changes one."""
    if request.method != "POST":
        found = access.get_lookup_table(viewer_of(request), table_id)
        if (kind := request.GET.get("format", "")) in KINDS:
            rows = all_rows(found, begins=request.GET.get("q", "").strip())
            return export(kind, rows, ("key", "row"), name=f"rows-{found.name}")
        return _page(request, found, _row_to_change(found, request.GET.get("edit", "")))
    found = access.get_lookup_table(viewer_of(request), table_id, access.CHANGE_LOOKUPS)
    act = {"put": _put, "remove": _remove}.get(request.POST.get("action", ""), _put)
    try:
        return act(request, found)
    except (services.LimitReachedError, services.TableRemovedError, services.TableInUseError) as exc:
        return _page(request, found, {"refused": str(exc)}, status=409)


@csrf_exempt  # checked after the permission check: reading the CSRF token parses the whole file
@for_members
@require_POST
def upload(request: HttpRequest, table_id: str) -> HttpResponseBase:
    """Store the rows of a file. The front (config.front) streams the request body."""
    found = access.get_lookup_table(viewer_of(request), table_id, access.CHANGE_LOOKUPS)
    return _checked_upload(request, found)


@csrf_protect
def _checked_upload(request: HttpRequest, found: LookupTable) -> HttpResponseBase:
    try:
        return _upload(request, found)
    except (
        services.LimitReachedError,
        services.TableRemovedError,
        services.TableInUseError,
        UploadTooLarge,
    ) as exc:
        return _page(request, found, {"refused": str(exc)}, status=409)


@for_members
@require_http_methods(["GET", "POST"])
def delete_table(request: HttpRequest, table_id: str) -> HttpResponse:
    """Delete a table with its rows, after its name was typed as confirmation."""
    found = access.get_lookup_table(viewer_of(request), table_id, access.CHANGE_LOOKUPS)
    typed, refused = request.POST.get("typed", "").strip(), ""
    if request.method == "POST" and typed == found.name:
        try:
            services.delete_lookup_table(table=found, by=viewer_of(request))
        except services.TableInUseError as exc:
            refused = str(exc)
        else:
            messages.success(request, f"Table {found.name} and its rows deleted.", "fine")
            return redirect("console:tables")
    wrong = "" if request.method != "POST" or refused else typed or "nothing"
    context = {
        "table": found,
        "status": shown_status(found),
        "wrong": wrong,
        "refused": refused,
        "users": revisions_using(found),
    }
    status = 409 if refused else 422 if wrong else 200
    return show(request, "lookups/delete.html", context, tenant=found.tenant, status=status)


def _put(request: HttpRequest, found: LookupTable) -> HttpResponse:
    """Store one row; also used to undo a removal."""
    key, text = request.POST.get("key", "").strip(), request.POST.get("row", "")
    try:
        row = checked_row(1, key, _object(text))
    except RowFileError as exc:
        return _page(request, found, {"key": key, "row": text, "row_error": exc.reason}, status=422)
    is_new = services.put_row(table=found, row=row, by=viewer_of(request))
    messages.success(
        request, f"Row {key} {'added' if is_new else 'changed'}. Running pipes apply the change within seconds.", "fine"
    )
    return redirect("console:table", found.id)


def _remove(request: HttpRequest, found: LookupTable) -> HttpResponse:
    """Remove a row and render the page with its content, so that it can be restored."""
    key = request.POST.get("key", "")
    was = row_text(found, key)
    services.remove_row(table=found, key=key, by=viewer_of(request))
    return _page(request, found, {"removed": {"key": key, "row": was}})


def _upload(request: HttpRequest, found: LookupTable) -> HttpResponse:
    """Store all rows of a file, or none of them."""
    file, key_field = request.FILES.get("file"), request.POST.get("key_field", "").strip() or "key"
    mode = request.POST.get("mode", "")
    if not isinstance(file, UploadedFile):
        return _page(request, found, {"key_field": key_field, "upload_error": "Choose a file to upload."}, status=422)
    form = "jsonl" if str(file.name).lower().endswith((".jsonl", ".ndjson", ".json")) else "csv"
    try:
        rows = read_rows(cast("Any", file), cast("Any", form), key_field)
        held = services.upload_rows(
            table=found, rows=rows, mode=cast("Mode", mode if mode in _MODES else "merge"), by=viewer_of(request)
        )
    except RowFileError as exc:
        where = f"Row {exc.number}" if exc.number else "The file"
        error = f"{where} {exc.reason}. No row of the file was stored."
        return _page(request, found, {"key_field": key_field, "upload_error": error}, status=422)
    messages.success(
        request,
        f"{held} row{'s' if held != 1 else ''} uploaded. Running pipes apply the change within seconds.",
        "fine",
    )
    return redirect("console:table", found.id)


def _object(text: str) -> dict[str, Any]:
    try:
        row = json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise RowFileError(1, f"needs a JSON object: {exc}") from exc
    if not isinstance(row, dict):
        raise RowFileError(1, "needs a JSON object")
    return row


def _row_to_change(found: LookupTable, key: str) -> dict[str, Any]:
    try:
        return {"key": key, "row": row_text(found, key), "changing": True} if key else {}
    except (LookupRow.DoesNotExist, TableUnreachable):
        return {"key": key}


def _list(request: HttpRequest, tenant: Tenant, *, typed: str = "", error: str = "") -> HttpResponseBase:
    mine = list(access.lookup_tables_of(viewer_of(request)).filter(tenant=tenant).order_by("name"))
    statuses = statuses_of(mine)
    if (kind := request.GET.get("format", "")) in KINDS and not error:
        rows = (_exported(one, statuses[one.id]) for one in mine)
        return export(kind, rows, _COLUMNS, name="look-up-tables")
    feeds = feeds_of(mine)
    lines = [{"table": one, "status": statuses[one.id], "feeds": feeds.get(one.id, [])} for one in mine]
    problem = next((status.problem for status in statuses.values() if status.problem), "")
    context = {
        "lines": lines,
        "problem": problem,
        "typed": typed,
        "error": error,
        "curl": as_curl("lookup-tables/"),
    }
    return show(request, "lookups/tables.html", context, tenant=tenant, status=422 if error else 200)


def _exported(table: LookupTable, status: LookupTableStatus) -> dict[str, Any]:
    """Return a table's line of the export, with the figures of its rows wherever they are."""
    own = {name: getattr(table, name) for name in _COLUMNS}
    return own | {"row_count": status.rows, "changed_at": status.changed_at}


def _rows(found: LookupTable, *, begins: str, after: str) -> LookupRowPage | None:
    """Return a page of rows; None if no host answers, which the page's status explains."""
    try:
        return rows_of(found, begins=begins, after=after)
    except TableUnreachable:
        return None


def _looked_up(found: LookupTable, key: str) -> LookupRowLine | None:
    """Return the row that a viewer asked for; None if there is none, or if no host answers."""
    try:
        return row_line(found, key) if key else None
    except (LookupRow.DoesNotExist, TableUnreachable):
        return None


def _query_curl(found: LookupTable) -> str:
    """Return the curl command of a table query; "" if the installation offers none."""
    if not settings.PENSTOCK_TABLES_URL:
        return ""
    return row_curl(url=f"{settings.PENSTOCK_TABLES_URL}{row_path(found.id, '')}")


def _changes_curl(found: LookupTable) -> str:
    """Return the curl command that follows a table's changes; "" if the installation offers no direct access."""
    if not settings.PENSTOCK_TABLES_URL:
        return ""
    return changes_curl(url=f"{settings.PENSTOCK_TABLES_URL}{changes_path(found.id)}")


def _page(request: HttpRequest, found: LookupTable, more: Mapping[str, Any], status: int = 200) -> HttpResponse:
    found.refresh_from_db()
    begins, after = request.GET.get("q", "").strip(), request.GET.get("after", "")
    status_now, feeds = shown_status(found), feeds_of([found]).get(found.id, [])
    looked_up = request.GET.get("key", "")
    may_read = not status_now.problem  # else each attempt would wait as long as the first one
    context = {
        "table": found,
        "status": status_now,
        "feeds": feeds,
        "may_enter_rows": not feeds,
        "looked_up": looked_up,
        "get_row": once(partial(_looked_up, found, looked_up)) if may_read else None,
        "access_curl": as_curl(f"lookup-tables/{found.id}/access/", {}),
        "query_curl": _query_curl(found),
        "changes_curl": _changes_curl(found),
        "begins": begins,
        "query": urlencode({"q": begins}) if begins else "",
        "after": after,
        "users": revisions_using(found),
        "get_rows": once(partial(_rows, found, begins=begins, after=after)) if may_read else None,
        "curl": as_curl(f"lookup-tables/{found.id}/"),
        **more,
    }
    part = "rows" if "HX-Request" in request.headers and request.GET.get("part") == "rows" else ""
    return show(request, "lookups/table.html", context, tenant=found.tenant, part=part, status=status)
