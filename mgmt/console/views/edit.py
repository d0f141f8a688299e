"""Making a pipe and publishing revisions: forms in, services called, refusals shown where they belong."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_http_methods, require_POST

from dataplane.spec import SpecError
from mgmt import access, services
from mgmt.console.pages import as_curl, for_members, ingest_url, number_of, once, show, tenant_of, viewer_of
from mgmt.console.pipe_form import Draft, PipeForm, draft_from_post, draft_from_spec, starting_text
from mgmt.console.snippets import endpoint, send_snippets
from mgmt.console.steps import OPS, StepRow
from mgmt.models import Pipe, Tenant
from mgmt.queries.first import first_of
from mgmt.queries.pipes import standings_of

_DROP: Final = "drop-"


@dataclass(frozen=True)
class ShownKey:
    """A key on the one page that shows it."""

    source: str
    secret: str


@for_members
@require_http_methods(["GET", "POST"])
def new_pipe(request: HttpRequest) -> HttpResponse:
    """The form for a new pipe; after it the page that shows the key and waits for the first event."""
    chosen = tenant_of(request)
    if chosen is None:
        raise Tenant.DoesNotExist
    tenant = access.get_tenant(viewer_of(request), chosen.id, access.CREATE_PIPE)
    if request.method != "POST":
        return _form(request, tenant, Draft(PipeForm(), as_json=_wants_json(request), text=starting_text()))
    draft = draft_from_post(request.POST, {})
    if (edited := _edited(request, draft)) is not None:
        return _form(request, tenant, edited, part=_steps_part(request))
    draft, pipe = _create(request, tenant, draft)
    return _created(request, pipe) if pipe else _form(request, tenant, draft, status=422)


@for_members
@require_http_methods(["GET", "POST"])
def edit_pipe(request: HttpRequest, pipe_id: str) -> HttpResponse:
    """The form for the next revision, on top of the newest one; `from` starts with the spec of an older one."""
    pipe = access.get_pipe(viewer_of(request), pipe_id, access.PUBLISH_REVISION)
    start = number_of(request.GET.get("from"))
    spec: Mapping[str, Any] = (pipe.revisions.get(number=start) if start else pipe.revisions.latest("number")).spec
    if request.method != "POST":
        draft = draft_from_spec(pipe.name, spec, as_json=_wants_json(request))
        return _form(request, pipe.tenant, draft, pipe=pipe, based_on=pipe.revisions.latest("number").number)
    based_on = number_of(request.POST.get("based_on"))
    draft = draft_from_post(request.POST, spec, name=pipe.name)
    if (edited := _edited(request, draft)) is not None:
        return _form(request, pipe.tenant, edited, part=_steps_part(request), pipe=pipe, based_on=based_on)
    return _publish(request, pipe, draft, based_on)


@for_members
@require_http_methods(["GET", "POST"])
def close_pipe(request: HttpRequest, pipe_id: str) -> HttpResponse:
    """Asks to type the pipe's name, then closes it."""
    pipe = access.get_pipe(viewer_of(request), pipe_id, access.CLOSE_PIPE)
    typed = request.POST.get("typed", "").strip()
    if request.method == "POST" and typed == pipe.name:
        services.close_pipe(pipe=pipe)
        return redirect("console:pipe", pipe.id)
    context = {"pipe": pipe, "wrong": typed or ("nothing" if request.method == "POST" else "")}
    return show(request, "pipe_close.html", context, tenant=pipe.tenant, status=422 if context["wrong"] else 200)


@for_members
@require_POST
def reopen_pipe(request: HttpRequest, pipe_id: str) -> HttpResponse:
    """Takes events again."""
    pipe = access.get_pipe(viewer_of(request), pipe_id, access.CLOSE_PIPE)
    services.reopen_pipe(pipe=pipe)
    messages.success(request, f"{pipe.name} takes events again.", extra_tags="fine")
    return redirect("console:pipe", pipe.id)


@for_members
@require_POST
def pause_pipe(request: HttpRequest, pipe_id: str) -> HttpResponse:
    """Accepts and holds, for every destination."""
    pipe = access.get_pipe(viewer_of(request), pipe_id, access.PAUSE)
    try:
        services.pause_pipe(pipe=pipe)
        messages.success(request, f"{pipe.name} is paused: it accepts events and holds them.", "fine")
    except services.Refused as exc:
        messages.error(request, str(exc), "bad")
    return redirect("console:pipe", pipe.id)


@for_members
@require_POST
def resume_pipe(request: HttpRequest, pipe_id: str) -> HttpResponse:
    """Delivers again, what is held first."""
    pipe = access.get_pipe(viewer_of(request), pipe_id, access.PAUSE)
    try:
        services.resume_pipe(pipe=pipe)
        messages.success(request, f"{pipe.name} delivers again; what is held goes out in order.", "fine")
    except services.Refused as exc:
        messages.error(request, str(exc), "bad")
    return redirect("console:pipe", pipe.id)


def _create(request: HttpRequest, tenant: Tenant, draft: Draft) -> tuple[Draft, Pipe | None]:
    """The new pipe, or the draft with what is wrong with it."""
    if not draft.valid():
        return draft, None
    try:
        name, spec = draft.form.cleaned_data["name"], draft.document()
        return draft, services.create_pipe(tenant=tenant, name=name, spec=spec, author=viewer_of(request))
    except SpecError as exc:
        return draft.with_error(exc.path, exc.reason), None
    except ValueError as exc:
        return replace(draft, text_error=f"This is not JSON: {exc}"), None
    except services.InvalidValue as exc:
        draft.form.add_error("name", exc.reason)
    except services.NameTaken as exc:
        draft.form.add_error("name", str(exc))
    return draft, None


def _publish(request: HttpRequest, pipe: Pipe, draft: Draft, based_on: int) -> HttpResponse:
    answer = partial(_form, request, pipe.tenant, pipe=pipe, based_on=based_on, status=422)
    if not draft.valid():
        return answer(draft)
    try:
        services.publish_revision(pipe=pipe, spec=draft.document(), based_on=based_on, author=viewer_of(request))
    except SpecError as exc:
        return answer(draft.with_error(exc.path, exc.reason))
    except ValueError as exc:
        return answer(replace(draft, text_error=f"This is not JSON: {exc}"))
    except services.RevisionConflict as exc:
        newest = pipe.revisions.latest("number").number
        return answer(draft, based_on=newest, conflict=str(exc), status=409)
    except services.PipeClosed as exc:
        return answer(draft, conflict=str(exc), status=409)
    return redirect("console:pipe", pipe.id)


def _form(
    request: HttpRequest,
    tenant: Tenant,
    draft: Draft,
    *,
    part: str = "",
    status: int = 200,
    pipe: Pipe | None = None,
    based_on: int = 0,
    conflict: str = "",
) -> HttpResponse:
    context = {
        "draft": draft,
        "ops": OPS,
        "pipe": pipe,
        "based_on": based_on,
        "next_number": based_on + 1,
        "conflict": conflict,
        "base_text": json.dumps(draft.base) if draft.base else "",
        "curl": _curl(request, draft, pipe, based_on),
    }
    return show(request, "pipe_form.html", context, tenant=tenant, part=part, status=status)


@sensitive_variables("keys", "key", "secret")
def _created(request: HttpRequest, pipe: Pipe) -> HttpResponse:
    """Answers the POST itself: the keys must not wait in a session for the next request."""
    keys = [
        ShownKey(source.name, services.create_api_key(source=source, label="first")[1])
        for source in pipe.sources.order_by("id")
    ]
    context = {
        "pipe": pipe,
        "standing": standings_of([pipe])[pipe.id],
        "get_first": once(partial(first_of, pipe.id)),
        "keys": keys,
        "signing": [
            (one.name, services.signing_secrets(destination=one)[0]) for one in pipe.destinations.order_by("id")
        ],
        "endpoint": endpoint(ingest_url()),
        "snippets": send_snippets(ingest_url=ingest_url(), key=keys[0].secret),
        "curl": as_curl(request, "pipes/", {"name": pipe.name, "spec": pipe.revisions.get(number=1).spec}),
    }
    return show(request, "pipe_created.html", context, tenant=pipe.tenant)


def _edited(request: HttpRequest, draft: Draft) -> Draft | None:
    """The draft with a step row added, dropped or redrawn, or in its other form; None if it is to be saved."""
    action = request.POST.get("action", "save")
    if action == "as-json" and not draft.as_json:
        return draft.written_as_json()
    if action == "as-form" and draft.as_json:
        return draft.shown_as_form()
    if action == "add":
        return replace(draft, steps=(*draft.steps, StepRow())).unbound()
    if action == "refresh":
        return draft.unbound()
    if action.startswith(_DROP):
        gone = number_of(action.removeprefix(_DROP))
        return replace(draft, steps=tuple(row for place, row in enumerate(draft.steps) if place != gone)).unbound()
    return None


def _steps_part(request: HttpRequest) -> str:
    return "steps" if "HX-Request" in request.headers else ""


def _wants_json(request: HttpRequest) -> bool:
    return request.GET.get("mode") == "json"


def _curl(request: HttpRequest, draft: Draft, pipe: Pipe | None, based_on: int) -> str:
    if pipe is None:
        return as_curl(request, "pipes/", {"name": "orders", "spec": json.loads(starting_text())})
    return as_curl(request, f"pipes/{pipe.id}/revisions/", {"based_on": based_on, "spec": draft.base})
