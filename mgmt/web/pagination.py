"""Keyset pagination: a cursor and a bounded limit; any other value is refused."""

import re
from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Any, NamedTuple

from django.db.models import QuerySet
from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.fields import DateTimeField
from rest_framework.pagination import Cursor, CursorPagination
from rest_framework.request import Request

from mgmt.ids import storable
from mgmt.web.problems import ProblemError

MAX_LIMIT = 200
MOST_OFFSET = 10_000_000


class KeysetPage(CursorPagination):
    """Page by `?limit=` and `?cursor=`, newest first."""

    page_size = 50
    page_size_query_param = "limit"
    page_size_query_description = f"Rows in a page, 1 to {MAX_LIMIT}."
    ordering: Any = "-id"
    position = re.compile(r"[a-z]+_[0-9a-z]{20}")

    def get_page_size(self, request: Request) -> int:
        """Return the requested limit. Raises ProblemError if it is out of range; the value is never clipped."""
        return limit_of(request, self.page_size)

    def decode_cursor(self, request: Request) -> Any:
        """Return the cursor. Raises ProblemError if it is not a cursor of this list."""
        try:
            cursor = super().decode_cursor(request)
        except (NotFound, UnicodeError) as exc:
            raise refused("cursor", "needs the cursor of a page's `next` or `previous`") from exc
        if cursor is not None and not self.is_position(None if cursor.position is None else str(cursor.position)):
            raise refused("cursor", "needs the cursor of a page's `next` or `previous`")
        return cursor

    def is_position(self, text: str | None) -> bool:
        """Return True if a cursor of this list may have this position."""
        return text is not None and self.position.fullmatch(text) is not None


class RevisionPage(KeysetPage):
    """Page of rows that are ordered by their number, such as revisions."""

    ordering = "-number"
    position = re.compile(r"[0-9]{1,9}")


class NumberPage(KeysetPage):
    """Page of rows whose id is a number."""

    position = re.compile(r"[0-9]{1,18}")


class TimePage(KeysetPage):
    """Page of rows that are ordered by their time `at`."""

    ordering = ("-at", "-id")
    position = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{6})?\+00:00")

    def is_position(self, text: str | None) -> bool:
        """Return True for a time that exists, and for None: the rows of one time are then counted from the first."""
        if text is None:
            return True
        try:
            return super().is_position(text) and bool(datetime.fromisoformat(text))
        except ValueError:
            return False  # such as February 30


class BucketPage(KeysetPage):
    """Page of buckets (minutes), for lists that are computed and not read from one table."""

    position = re.compile(r"[0-9]{1,9}")

    def take(self, buckets: Iterable[int], request: Request) -> list[int]:
        """Return the buckets of the requested page, newest first, and remember the links to its neighbours."""
        limit, self.base_url = self.get_page_size(request), request.build_absolute_uri()
        cursor, newest_first = self.decode_cursor(request), sorted(buckets, reverse=True)
        if cursor is None:
            page = newest_first[:limit]
        elif cursor.reverse:
            page = [bucket for bucket in newest_first if bucket > int(cursor.position)][-limit:]
        else:
            page = [bucket for bucket in newest_first if bucket < int(cursor.position)][:limit]
        self._older = page[-1] if page and page[-1] != newest_first[-1] else None
        self._newer = page[0] if page and page[0] != newest_first[0] else None
        return page

    def links(self) -> dict[str, str | None]:
        """Return the `next` and `previous` of the page."""
        return {"next": self._link(self._older, reverse=False), "previous": self._link(self._newer, reverse=True)}

    def _link(self, bucket: int | None, *, reverse: bool) -> str | None:
        if bucket is None:
            return None
        link: str = self.encode_cursor(Cursor(offset=0, reverse=reverse, position=bucket))
        return link


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


def choice_of(request: Request, name: str, choices: Collection[str], default: str = "") -> str:
    """Return a query parameter that must be one of the choices. Raises ProblemError."""
    asked: str = request.query_params.get(name, default)
    if asked != default and asked not in choices:
        raise refused(name, f"needs one of {', '.join(choices)}")
    return asked


def limit_of(request: Request, default: int) -> int:
    """Return the number of rows in a response. Raises ProblemError if it is out of range."""
    return number_in(request, "limit", default, least=1, most=MAX_LIMIT)


def number_in(request: Request, name: str, default: int, *, least: int, most: int) -> int:
    """Return a query parameter that must be a whole number from `least` to `most`. Raises ProblemError."""
    asked = request.query_params.get(name)
    if asked is None:
        return default
    if not re.fullmatch(r"[0-9]{1,9}", asked) or not least <= int(asked) <= most:
        raise refused(name, f"needs a whole number from {least} to {most}")
    return int(asked)


def offset_of(request: Request) -> int:
    """Return the number of rows to skip: the parameter `offset`. Raises ProblemError parameter-invalid."""
    return number_in(request, "offset", 0, least=0, most=MOST_OFFSET)


def text_of(request: Request, name: str) -> str:
    """Return a query parameter as text that Postgres can compare: U+0000 is replaced."""
    return storable(request.query_params.get(name, ""))


def time_of(request: Request, name: str) -> datetime | None:
    """Return a query parameter that must be a time; None if it is absent. Raises ProblemError."""
    if name not in request.query_params:
        return None
    try:
        return DateTimeField().to_internal_value(request.query_params[name])
    except (ValidationError, OverflowError) as exc:
        raise refused(name, "needs a time such as 2026-01-31T12:00:00Z") from exc
