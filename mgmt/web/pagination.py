"""Keyset pagination: a cursor and a bounded limit; any other value is refused."""

import re
from typing import Any, NamedTuple

from django.db.models import QuerySet
from rest_framework.exceptions import NotFound
from rest_framework.pagination import CursorPagination
from rest_framework.request import Request

from mgmt.web.problems import ProblemError

MAX_LIMIT = 200


class KeysetPage(CursorPagination):
    """Page by `?limit=` and `?cursor=`, newest first."""

    page_size = 50
    page_size_query_param = "limit"
    page_size_query_description = f"Rows in a page, 1 to {MAX_LIMIT}."
    ordering = "-id"
    position = re.compile(r"[a-z]+_[0-9a-z]{20}")

    def get_page_size(self, request: Request) -> int:
        """Return the requested limit. Raises ProblemError if it is out of range; the value is never clipped."""
        asked = request.query_params.get("limit", str(self.page_size))
        if not re.fullmatch(r"[0-9]{1,4}", asked) or not 1 <= int(asked) <= MAX_LIMIT:
            raise refused("limit", f"needs a whole number from 1 to {MAX_LIMIT}")
        return int(asked)

    def decode_cursor(self, request: Request) -> Any:
        """Return the cursor. Raises ProblemError if it is not a cursor of this list."""
        try:
            cursor = super().decode_cursor(request)
        except (NotFound, UnicodeError) as exc:
            raise refused("cursor", "needs the cursor of a page's `next` or `previous`") from exc
        if cursor is not None and (cursor.position is None or not self.position.fullmatch(str(cursor.position))):
            raise refused("cursor", "needs the cursor of a page's `next` or `previous`")
        return cursor


class RevisionPage(KeysetPage):
    """Page of rows that are ordered by their number, such as revisions."""

    ordering = "-number"
    position = re.compile(r"[0-9]{1,9}")


class NumberPage(KeysetPage):
    """Page of rows whose id is a number."""

    position = re.compile(r"[0-9]{1,18}")


class Page(NamedTuple):
    """Rows of one page, and the paginator that builds the response."""

    rows: list[Any]
    paginator: KeysetPage


def page_of(rows: QuerySet[Any], request: Request, paginator: KeysetPage) -> Page:
    """Return the page that the request's parameters name. Raises ProblemError for parameters that are not valid."""
    return Page(list(paginator.paginate_queryset(rows, request) or []), paginator)


def refused(parameter: str, reason: str) -> ProblemError:
    """Return the problem for a query parameter that is not valid."""
    error = {"parameter": parameter, "detail": reason, "code": "parameter-invalid"}
    return ProblemError("parameter-invalid", f"{parameter}: {reason}", [error])
