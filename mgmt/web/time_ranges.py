"""Time range of an operation of the API: a named range up to now, or the minutes between two times."""

from datetime import datetime
from typing import Final

from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request

from mgmt.ledger.queries.bucket_range import (
    DEFAULT_SPAN,
    MOST_SELECTED_MIN,
    SPANS,
    BucketRange,
    SelectionError,
    range_between,
    span_until,
)
from mgmt.web.openapi import RANGE
from mgmt.web.pagination import choice_of, refused, time_of

SINCE: Final = OpenApiParameter(
    "since", datetime, description="First minute of the range. Needs `until`, and replaces `range`."
)
UNTIL: Final = OpenApiParameter(
    "until", datetime, description=f"End of the range: its minute is excluded. At most {MOST_SELECTED_MIN // 60} hours."
)
RANGE_PARAMETERS: Final = [RANGE, SINCE, UNTIL]


def range_of(request: Request) -> BucketRange:
    """Return the minutes that `since` and `until`, or `range`, name. Raises ProblemError for other values."""
    now = timezone.now()
    since, until = time_of(request, "since"), time_of(request, "until")
    if since is None and until is None:
        return span_until(choice_of(request, "range", list(SPANS), DEFAULT_SPAN), now)
    if since is None or until is None:
        raise refused("since" if since is None else "until", "is needed: a range has a start and an end")
    if "range" in request.query_params:
        raise refused("range", "cannot be used with `since` and `until`")
    try:
        return range_between(since, until, now)
    except SelectionError as exc:
        raise refused("until", f"does not fit `since`: {exc}") from exc
