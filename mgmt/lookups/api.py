"""Look-up tables: create, list, read, upload, delete; rows by key and by prefix; state of the hosts' copies."""

import json
from collections.abc import Iterable, Mapping
from typing import Any, cast

from django.urls import reverse
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.response import Response

from dataplane.tables.query_protocol import MOST_ROWS
from mgmt.ids import storable
from mgmt.lookups.queries.feeds import TableFeed, feeds_of
from mgmt.lookups.queries.rows import row_line, rows_of
from mgmt.lookups.queries.status import table_status
from mgmt.lookups.row_files import RowFileError, checked_row, read_rows
from mgmt.lookups.serializers import (
    LookupRowPageOut,
    LookupTableIn,
    LookupTableOut,
    LookupTablePageOut,
    LookupTableStatusOut,
    TableAccessOut,
    UploadOut,
)
from mgmt.lookups.services import Mode
from mgmt.models import LookupTable
from mgmt.services import (
    create_lookup_table,
    delete_lookup_table,
    grant_table_access,
    put_row,
    remove_row,
    upload_rows,
)
from mgmt.web import access
from mgmt.web.api_view import View, body_of, tenant_for
from mgmt.web.openapi import LOCATION, PAGE_PARAMETERS, answers, operation
from mgmt.web.pagination import KeysetPage, page_of
from mgmt.web.parsers import BoundedJSONParser, CsvParser, JsonLinesParser, RowFile
from mgmt.web.problems import ProblemError

# Codes of the problems that storing one or many rows can cause.
ROWS_REFUSED = (
    "role-too-low",
    "not-found",
    "limit-reached",
    "table-in-use",
    "table-removed",
    "body-too-large",
    "media-type",
    "row-invalid",
)
ROWS_PARAMETERS = [
    OpenApiParameter("prefix", str, description="What the keys start with. Default: all keys."),
    OpenApiParameter("after", str, description="`after` of the previous response."),
    OpenApiParameter("limit", int, description=f"Rows in the response, 1 to {MOST_ROWS}. Default: 100."),
]
UPLOAD_PARAMETERS = [
    OpenApiParameter("key", str, description="Column or field that contains the row's key. Default: `key`."),
    OpenApiParameter(
        "mode", str, enum=["merge", "replace"], description="`replace` removes all rows that are not in the file."
    ),
]


class LookupTablesView(View):
    """All look-up tables of the user's tenants."""

    @operation(
        "list_lookup_tables",
        parameters=PAGE_PARAMETERS,
        responses=answers(200, LookupTablePageOut, "parameter-invalid"),
    )
    def get(self, request: Request) -> Response:
        """List the look-up tables of all your tenants, newest first."""
        rows, paginator = page_of(access.lookup_tables_of(self.user), request, KeysetPage())
        return paginator.get_paginated_response(LookupTableOut(rows, many=True, context=_feeds(rows)).data)

    @operation(
        "create_lookup_table",
        parameters=[LOCATION],
        request=LookupTableIn,
        responses=answers(
            201,
            LookupTableOut,
            "invalid",
            "role-too-low",
            "not-found",
            "name-taken",
            "limit-reached",
            "body-too-large",
            "media-type",
        ),
    )
    def post(self, request: Request) -> Response:
        """Create an empty look-up table. Pipes of its tenant refer to it by name in their `enrich` steps."""
        body = body_of(request, LookupTableIn)
        tenant = tenant_for(self.user, body.get("tenant"), access.CHANGE_LOOKUPS)
        table = create_lookup_table(tenant=tenant, name=body["name"], by=self.user)
        location = reverse("api:lookup-table", args=[table.id])
        return Response(LookupTableOut(table, context=_feeds([table])).data, status=201, headers={"Location": location})


class LookupTableView(View):
    """One look-up table."""

    @operation("get_lookup_table", responses=answers(200, LookupTableOut, "not-found"))
    def get(self, _request: Request, table: str) -> Response:
        """Return a look-up table."""
        row = access.get_lookup_table(self.user, table)
        return Response(LookupTableOut(row, context=_feeds([row])).data)

    @operation(
        "delete_lookup_table", request=None, responses=answers(204, None, "role-too-low", "not-found", "table-in-use")
    )
    def delete(self, _request: Request, table: str) -> Response:
        """Delete a look-up table and its rows. Refused while a revision in use reads the table."""
        delete_lookup_table(table=access.get_lookup_table(self.user, table, access.CHANGE_LOOKUPS), by=self.user)
        return Response(status=204)


class UploadView(View):
    """Upload of many rows."""

    parser_classes = [CsvParser, JsonLinesParser]

    @operation(
        "upload_lookup_rows",
        idempotency_key=False,
        parameters=UPLOAD_PARAMETERS,
        request=dict.fromkeys(("text/csv", "application/x-ndjson"), OpenApiTypes.STR),
        responses=answers(
            200,
            UploadOut,
            "parameter-invalid",
            *ROWS_REFUSED,
        ),
    )
    def post(self, request: Request, table: str) -> Response:
        """Store all rows of a CSV file with a header line, or of JSON lines, or none. `errors` names the bad row."""
        row = access.get_lookup_table(self.user, table, access.CHANGE_LOOKUPS)
        mode = request.query_params.get("mode", "merge")
        if mode not in ("merge", "replace"):
            reason = "needs merge or replace"
            error = {"parameter": "mode", "detail": reason, "code": "parameter-invalid"}
            raise ProblemError("parameter-invalid", f"mode: {reason}", [error])
        file: object = request.data
        if not isinstance(file, RowFile):  # DRF calls no parser for an empty body
            raise RowFileError(0, "needs rows, got an empty body")
        rows = read_rows(file.stream, file.form, request.query_params.get("key", "key"))
        count = upload_rows(table=row, rows=rows, mode=cast("Mode", mode), by=self.user)
        row.refresh_from_db()
        return Response({"rows": count, "table": LookupTableOut(row, context=_feeds([row])).data})


class LookupTableStatusView(View):
    """Rows, last change and lag of a look-up table."""

    @operation(
        "get_lookup_table_status", responses=answers(200, LookupTableStatusOut, "not-found", "table-unreachable")
    )
    def get(self, _request: Request, table: str) -> Response:
        """Return the rows, last change and lag of a table. Those of a stream-fed table come from a host's copy."""
        row = access.get_lookup_table(self.user, table)
        return Response(LookupTableStatusOut(table_status(row)).data)


class TableAccessView(View):
    """Direct access to the rows of a look-up table."""

    @operation(
        "grant_lookup_table_access",
        request=None,
        responses=answers(201, TableAccessOut, "not-found", "access-not-offered"),
    )
    def post(self, _request: Request, table: str) -> Response:
        """Return a URL and a token with which rows of this table can be read for 15 minutes, with low latency."""
        granted = grant_table_access(table=access.get_lookup_table(self.user, table), now=timezone.now(), by=self.user)
        return Response(TableAccessOut(granted).data, status=201, headers={"Cache-Control": "no-store"})


class RowsView(View):
    """Rows of a look-up table by prefix."""

    @operation(
        "list_lookup_rows",
        parameters=ROWS_PARAMETERS,
        responses=answers(200, LookupRowPageOut, "parameter-invalid", "not-found", "table-unreachable"),
    )
    def get(self, request: Request, table: str) -> Response:
        """List rows whose keys start with a prefix, in key order."""
        row = access.get_lookup_table(self.user, table)
        given = request.query_params
        page = rows_of(
            row, begins=given.get("prefix", ""), after=given.get("after", ""), limit=_limit(given.get("limit", "100"))
        )
        lines = [{**vars(line), "row": json.loads(line.row)} for line in page.rows]
        return Response(LookupRowPageOut({"rows": lines, "after": page.after}).data)


class RowView(View):
    """One row of a look-up table."""

    parser_classes = [BoundedJSONParser]

    @operation("get_lookup_row", responses=answers(200, OpenApiTypes.OBJECT, "not-found", "table-unreachable"))
    def get(self, _request: Request, table: str, key: str) -> Response:
        """Return a row as it was stored. Rows of a stream-fed table are read from a host of the data plane."""
        return Response(json.loads(row_line(access.get_lookup_table(self.user, table), key).row))

    @operation(
        "put_lookup_row",
        request=OpenApiTypes.OBJECT,
        responses=answers(
            (200, 201),
            OpenApiTypes.OBJECT,
            "invalid",
            *ROWS_REFUSED,
        ),
    )
    def put(self, request: Request, table: str, key: str) -> Response:
        """Store a row, a JSON object, under its key; 201 if it is new. Running pipes use it within seconds."""
        row = access.get_lookup_table(self.user, table, access.CHANGE_LOOKUPS)
        body: Any = request.data
        if not isinstance(body, dict):
            raise ProblemError("invalid", errors=[{"pointer": "#", "detail": "needs an object", "code": "invalid"}])
        is_new = put_row(table=row, row=checked_row(1, key, body), by=self.user)
        return Response(body, status=201 if is_new else 200)

    @operation(
        "delete_lookup_row",
        request=None,
        responses=answers(204, None, "role-too-low", "not-found", "table-in-use", "table-removed"),
    )
    def delete(self, _request: Request, table: str, key: str) -> Response:
        """Delete a row."""
        row = access.get_lookup_table(self.user, table, access.CHANGE_LOOKUPS)
        remove_row(table=row, key=storable(key), by=self.user)
        return Response(status=204)


def _feeds(tables: Iterable[LookupTable]) -> dict[str, Mapping[str, list[TableFeed]]]:
    """Return the context that LookupTableOut needs."""
    return {"feeds": feeds_of(tables)}


def _limit(text: str) -> int:
    """Return the number of rows. Raises ProblemError."""
    if text.isascii() and text.isdigit() and len(text) <= 4 and 1 <= int(text) <= MOST_ROWS:
        return int(text)
    reason = f"needs a whole number from 1 to {MOST_ROWS}"
    error = {"parameter": "limit", "detail": reason, "code": "parameter-invalid"}
    raise ProblemError("parameter-invalid", f"limit: {reason}", [error])
