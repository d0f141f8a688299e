"""Search page: messages by id or position, and the events of a pipe by a field of their body."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from dataplane.ledger.units import format_position
from mgmt.ledger.queries.bucket_range import (
    DEFAULT_SPAN,
    SPANS,
    BucketRange,
    SelectionError,
    selected_range,
    span_until,
    start_of,
)
from mgmt.messages.field_condition import MOST_PATH, MOST_VALUE, OPERATORS, FieldCondition, FieldConditionError
from mgmt.messages.presenters import FoundLine, found_lines
from mgmt.messages.queries.body_search import BodySearch, parse_search_cursor, search_bodies
from mgmt.messages.queries.message_search import NEWEST, FoundMessage, find_messages
from mgmt.messages.queries.records import RecordUnavailableError
from mgmt.models import Pipe
from mgmt.sandbox import FilterRefusedError, SandboxRefused, TooManyAtOnce
from mgmt.tenancy.services.rate_limits import hit
from mgmt.web import access
from mgmt.web.rendering import as_curl, for_members, show, tenant_of, viewer_of
from mgmt.web.throttling import SEARCHES

MOST_LISTED: Final = 50
RANGES: Final = {"15m": "last 15 minutes", "1h": "last hour", "6h": "last 6 hours", "24h": "last 24 hours"}


@dataclass(frozen=True)
class FieldSearchForm:
    """Form of the search by a field: values as entered, with the problem of each field."""

    pipe: Pipe | None
    condition: FieldCondition
    range: str
    since: str
    until: str
    errors: dict[str, str]

    @property
    def query(self) -> dict[str, str]:
        """Query that repeats the search."""
        times = {"from": self.since, "to": self.until} if self.since or self.until else {"range": self.range}
        shown = {"field": self.condition.path, "op": self.condition.operator, "value": self.condition.value}
        return {"pipe": self.pipe.id if self.pipe else "", **shown, **times}

    def span(self, now: datetime) -> BucketRange:
        """Return the minutes to search. Raises SelectionError."""
        return selected_range(self.since, self.until, now) if "from" in self.query else span_until(self.range, now)


@for_members
@require_safe
def find(request: HttpRequest) -> HttpResponse:
    """Search messages of the selected tenant by `q`; redirect to the message if there is only one.

    `pipe`, `field`, `op` and `value` search the events of a pipe by a field, in a `range` or between `from` and `to`;
    `after` continues such a search.
    """
    tenant, text = tenant_of(request), request.GET.get("q", "").strip()[:200]
    pipes = list(access.pipes_of(viewer_of(request)).filter(tenant=tenant).order_by("name")) if tenant else []
    found, trouble = _find(pipes, text)
    if len(found) == 1:
        return redirect(_address(found[0]))
    form = _form(request, pipes)
    context = {
        "q": text,
        "lines": [(line, _address_of(line)) for line in found_lines(found[::-1][:MOST_LISTED])],
        "more": max(0, len(found) - MOST_LISTED),
        "trouble": trouble,
        "newest": NEWEST,
        "pipes": pipes,
        "names": {pipe.id: pipe.name for pipe in pipes},
        "form": form,
        "operators": OPERATORS,
        "ranges": RANGES,
        "most_path": MOST_PATH,
        "most_value": MOST_VALUE,
    }
    if "field" in request.GET and not text:
        context |= _by_field(request, form)
    return show(request, "messages/find.html", context, tenant=tenant)


def _find(pipes: list[Pipe], text: str) -> tuple[list[FoundMessage], str]:
    if not text or "\x00" in text:
        return [], ""
    try:
        return find_messages(pipes, text), ""
    except RecordUnavailableError as exc:
        return [], str(exc)


def _form(request: HttpRequest, pipes: list[Pipe]) -> FieldSearchForm:
    asked = {name: request.GET.get(name, "") for name in ("pipe", "field", "op", "value", "range", "from", "to")}
    pipe = next((one for one in pipes if one.id == asked["pipe"]), None)
    return FieldSearchForm(
        pipe=pipe or (pipes[0] if pipes and not asked["pipe"] else None),
        condition=FieldCondition(asked["field"].strip(), asked["op"] or next(iter(OPERATORS)), asked["value"]),
        range=asked["range"] if asked["range"] in SPANS else DEFAULT_SPAN,
        since=asked["from"],
        until=asked["to"],
        errors={},
    )


def _by_field(request: HttpRequest, form: FieldSearchForm) -> dict[str, Any]:
    """Run the search of the form; return its result, or what is wrong."""
    pipe, now = form.pipe, timezone.now()
    checked = _checked(form, now)
    if checked is None or pipe is None:
        return {}
    where, span = checked
    after = parse_search_cursor(request.GET.get("after", ""))
    user = viewer_of(request).pk
    try:
        if wait_s := hit(SEARCHES, str(user), now):
            raise TooManyAtOnce(f"You searched too often. Search again in {wait_s} s.")
        result = search_bodies(pipe, where, span=span, after=after, most=MOST_LISTED, owner=f"user {user}")
    except FilterRefusedError as exc:
        form.errors["value"] = f"This condition cannot be used: {exc}"
        return {}
    except SandboxRefused as exc:
        return {"search_trouble": str(exc)}
    except RecordUnavailableError as exc:
        return {"search_trouble": f"The events cannot be read: {exc.with_advice('Search again in a minute.')}"}
    times = {"range": span.name} if span.name else _times(span)
    return {
        "result": result,
        "found": [(line, _address_of(line)) for line in found_lines(result.found)],
        "done": result.total - result.left,
        "back_to": start_of(result.cursor.bucket) if result.cursor else start_of(span.first),
        "older": _older(form, result),
        "curl": as_curl(f"pipes/{pipe.id}/messages/search/?{urlencode({'where': where} | times)}"),
    }


def _checked(form: FieldSearchForm, now: datetime) -> tuple[str, BucketRange] | None:
    """Return the condition and the minutes of the form, or None after adding an error to it."""
    try:
        if form.pipe is not None:
            return form.condition.expression(), form.span(now)
        form.errors["pipe"] = "Choose a pipe."
    except FieldConditionError as exc:
        form.errors[exc.field] = str(exc)
    except SelectionError as exc:
        form.errors["from"] = f"This time range cannot be used: {exc}."
    return None


def _times(span: BucketRange) -> dict[str, str]:
    return {"since": start_of(span.first).isoformat(), "until": start_of(span.last + 1).isoformat()}


def _older(form: FieldSearchForm, result: BodySearch) -> str:
    return urlencode(form.query | {"after": str(result.cursor)}) if result.cursor else ""


def _address(found: FoundMessage) -> str:
    return _journey(found.pipe_id, format_position(found.position), found.child)


def _address_of(line: FoundLine) -> str:
    return _journey(line.pipe_id, line.position, line.child)


def _journey(pipe_id: str, position: str, child: int) -> str:
    path = reverse("console:message", args=[pipe_id, position])
    return f"{path}?{urlencode({'child': child})}" if child else path
