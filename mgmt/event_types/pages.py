"""Event types of a source: the form that binds subjects to it, and a sample event for each type."""

import json
from dataclasses import dataclass, replace
from typing import Any, Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods

from dataplane.tables.records import TYPE_IN_FIELD, TYPE_IN_HEADER
from mgmt import services
from mgmt.event_types.queries import bindable_subjects, event_types_of, newest_versions_of, type_settings_of
from mgmt.event_types.samples import SampleTooLargeError, sample_event
from mgmt.event_types.services import MAX_TYPES
from mgmt.models import EventType, SchemaText, Source
from mgmt.pipes.page_context import pipe_context
from mgmt.web import access
from mgmt.web.rendering import as_curl, for_members, ingest_url, number_of, show, viewer_of
from mgmt.web.snippets import send_curl

BLANK_ROWS: Final = 2  # empty rows that the form shows below the filled ones
PLACES: Final = (("one", "One event type"), ("field", "A field of the event"), ("header", "A header"))


@dataclass(frozen=True)
class EventTypesForm:
    """Fields of the form, as the user typed them.

    place: key of PLACES; where: path of the field, or name of the header
    """

    place: str = "one"
    where: str = ""
    rows: tuple[tuple[str, str], ...] = ()
    based_on: int = 0

    @property
    def type_from(self) -> str:
        """Return the place of an event's type as the service takes it."""
        prefix = {"field": TYPE_IN_FIELD, "header": TYPE_IN_HEADER}.get(self.place)
        return f"{prefix}{self.where}" if prefix else ""


@for_members
@require_http_methods(["GET", "HEAD", "POST"])
def event_types(request: HttpRequest, pipe_id: str, name: str) -> HttpResponse:
    """Show the event types of a source; a POST replaces them, or adds empty rows to the form."""
    if request.method != "POST":
        source = access.get_source(viewer_of(request), pipe_id, name)
        return _page(request, source)
    source = access.get_source(viewer_of(request), pipe_id, name, access.SET_EVENT_TYPES)
    form = _posted(request)
    if request.POST.get("action") == "more":
        return _page(request, source, form, blank=BLANK_ROWS * 2)
    try:
        made = services.set_event_types(
            source=source,
            type_from=form.type_from,
            subjects=_subjects(form),
            by=viewer_of(request),
            based_on=form.based_on,
        )
    except services.InvalidValue as exc:
        return _page(request, source, form, (exc.field, exc.reason), status=422)
    except services.ServiceError as exc:
        return _page(request, source, form, ("", str(exc)), status=409)
    words = "Event types saved. Ingest applies them within seconds."
    messages.success(request, words if made.types.exists() else "The source accepts all events again.", "fine")
    return redirect("console:event_types", source.pipe_id, source.name)


def _stored(source: Source, types: list[EventType]) -> EventTypesForm:
    settings = type_settings_of(source)
    kind, _, where = settings.type_from.partition(":")
    rows = tuple((one.name, one.subject.name) for one in types)
    return EventTypesForm(kind or "one", where, rows, settings.version)


def _posted(request: HttpRequest) -> EventTypesForm:
    names, subjects = request.POST.getlist("name"), request.POST.getlist("subject")
    rows = [(name.strip(), subject) for name, subject in zip(names, subjects, strict=False)]
    return EventTypesForm(
        place=request.POST.get("place", "one"),
        where=request.POST.get("where", "").strip(),
        rows=tuple(row for row in rows if any(row))[: MAX_TYPES + 1],
        based_on=number_of(request.POST.get("based_on")),
    )


def _subjects(form: EventTypesForm) -> dict[str, str]:
    """Return the subject of each event type; a row without a subject is removed. Raises InvalidValue."""
    rows = [(name, subject) for name, subject in form.rows if subject]
    if form.place == "one":
        if len(rows) > 1:
            raise services.InvalidValue("subjects", "needs one row, or a field or header that names the event type")
        return {"": rows[0][1]} if rows else {}
    names = [name for name, _ in rows]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise services.InvalidValue("subjects", f"needs each event type once, got {twice} twice")
    return dict(rows)


def _page(
    request: HttpRequest,
    source: Source,
    form: EventTypesForm | None = None,
    error: tuple[str, str] | None = None,
    *,
    blank: int = BLANK_ROWS,
    status: int = 200,
) -> HttpResponse:
    types = list(event_types_of(source))
    stored = _stored(source, types)
    form = form or stored
    subjects = list(bindable_subjects(source.pipe.tenant_id).values_list("name", flat=True))
    body = {"type_from": stored.type_from, "subjects": {one.name: one.subject.name for one in types}}
    path = f"pipes/{source.pipe_id}/sources/{source.name}/event-types/"
    rows = [*form.rows, *[("", "")] * blank][: max(MAX_TYPES, len(form.rows))]
    context = pipe_context(source.pipe, "settings") | {
        "source": source,
        "types": types,
        "samples": _samples(stored, types),
        "form": replace(form, rows=tuple(rows)),
        "places": PLACES,
        "subjects": sorted({*subjects, *(one.subject.name for one in types)}),
        "error_at": error[0] if error else "",
        "error": error[1] if error else "",
        "curl": as_curl(path, body, method="PUT"),
    }
    return show(request, "event_types/event_types.html", context, tenant=source.pipe.tenant, status=status)


def _samples(stored: EventTypesForm, types: list[EventType]) -> list[tuple[str, str]]:
    """Return, for each event type, its name and the command that sends an event of it; "" for a very large event."""
    newest = newest_versions_of(types)
    return [(one.name, _command(stored, one.name, newest[one.subject_id].schema)) for one in types]


def _command(stored: EventTypesForm, name: str, schema: SchemaText) -> str:
    try:
        event: Any = sample_event(schema.type, schema.document)
    except SampleTooLargeError:
        return ""
    if stored.place == "field" and isinstance(event, dict):
        _put(event, stored.where.split("."), name)
    named = [f"{stored.where}: {name}"] if stored.place == "header" else []
    return send_curl(ingest_url=ingest_url(), event=json.dumps(event, ensure_ascii=False), headers=named)


def _put(event: dict[str, Any], path: list[str], value: str) -> None:
    for key in path[:-1]:
        child = event.get(key)
        if not isinstance(child, dict):
            child = event[key] = {}
        event = child
    event[path[-1]] = value
