"""Lists in pages by keyset: a cursor, a bounded limit, and a refusal for anything else."""

import re
from typing import Any, NamedTuple

from django.db.models import QuerySet
from rest_framework.exceptions import NotFound
from rest_framework.pagination import CursorPagination
from rest_framework.request import Request

from mgmt.api.problems import ProblemError

MAX_LIMIT = 200


class KeysetPage(CursorPagination):
    """`?limit=` and `?cursor=`; newest first."""

    page_size = 50
    page_size_query_param = "limit"
    page_size_query_description = f"Rows in a page, 1 to {MAX_LIMIT}."
    ordering = "-id"
    position = re.compile(r"[a-z]+_[0-9a-z]{20}")

    def get_page_size(self, request: Request) -> int:
        """The limit asked for; refused, not clipped, when it is out of range."""
        asked = request.query_params.get("limit", str(self.page_size))
        if not re.fullmatch(r"[0-9]{1,4}", asked) or not 1 <= int(asked) <= MAX_LIMIT:
            raise refused("limit", f"needs a whole number from 1 to {MAX_LIMIT}")
        return int(asked)

    def decode_cursor(self, request: Request) -> Any:
        """The cursor; refused if it is not one that we gave out for this list."""
        try:
            cursor = super().decode_cursor(request)
        except (NotFound, UnicodeError) as exc:
            raise refused("cursor", "needs the cursor of a page's `next` or `previous`") from exc
        if cursor is not None and (cursor.position is None or not self.position.fullmatch(str(cursor.position))):
            raise refused("cursor", "needs the cursor of a page's `next` or `previous`")
        return cursor


class RevisionPage(KeysetPage):
    """Revisions, by number."""

    ordering = "-number"
    position = re.compile(r"[0-9]{1,9}")


class NumberPage(KeysetPage):
    """Rows whose id is a number."""

    position = re.compile(r"[0-9]{1,18}")


class Page(NamedTuple):
    """A page of rows and who can make the answer from them."""

    rows: list[Any]
    paginator: KeysetPage


def page_of(rows: QuerySet[Any], request: Request, paginator: KeysetPage) -> Page:
    """The page that the request asks for."""
    return Page(list(paginator.paginate_queryset(rows, request) or []), paginator)


def refused(parameter: str, reason: str) -> ProblemError:
    """A query parameter that cannot be used, as a problem."""
    error = {"parameter": parameter, "detail": reason, "code": "parameter-invalid"}
    return ProblemError("parameter-invalid", f"{parameter}: {reason}", [error])
