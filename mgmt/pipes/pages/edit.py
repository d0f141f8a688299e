"""Create pipes and publish revisions: reads drafts of the editor, calls services, shows errors at their fields."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_http_methods

from dataplane.spec import SpecError
from mgmt import services
from mgmt.cells.policies import admission_policy, ramp_policy
from mgmt.deliveries.credential_form import PREFIX, asked_credentials, posted_credentials
from mgmt.delivery_tests.services import request_draft_test
from mgmt.messages.queries.last_event import RecordUnavailableError
from mgmt.models import AlertChannel, Pipe, Tenant
from mgmt.pipes.destination_presets import preset_named
from mgmt.pipes.editor.actions import apply_action, place_of, with_destination, with_preset, with_url
from mgmt.pipes.editor.comparison import comparison_panel
from mgmt.pipes.editor.draft import Draft, NotEditableAsForm, draft_from_spec, starting_text
from mgmt.pipes.editor.errors import URL_NEEDED, first_target, with_error, with_missing
from mgmt.pipes.editor.page import (
    EXAMPLE,
    EditorContext,
    digest_of,
    event_of,
    page_context,
    with_newest_event,
    with_stored_sample,
)
from mgmt.pipes.editor.posted import draft_from_post
from mgmt.pipes.editor.templates import STARTS, draft_of, template_named
from mgmt.pipes.page_context import pipe_context
from mgmt.pipes.queries.comparison import NotComparableError, compare_with_live
from mgmt.pipes.queries.first_delivery import first_delivery
from mgmt.pipes.queries.pipes import pipe_statuses
from mgmt.pipes.queries.plan_preview import plan_preview
from mgmt.ramps.admission_schedule import MOST_EXPECTED
from mgmt.sandbox import SandboxRefused
from mgmt.shadows.form import new_shadow_context
from mgmt.tenancy.services.rate_limits import hit
from mgmt.web import access
from mgmt.web.rendering import as_curl, for_members, ingest_url, number_of, once, selected_tenant, show, viewer_of
from mgmt.web.snippets import endpoint, send_snippets
from mgmt.web.throttling import COMPARISONS

_REFUSED: Final = (
    SpecError,
    ValueError,
    SandboxRefused,
    services.InvalidValue,
    services.NameTakenError,
    services.QuotaExceededError,
)
_EXAMPLE_URL: Final = "https://receiver.example.com/"
TELL: Final = "tell"
EXPECTED: Final = "expected"
ROLLOUT: Final = "rollout"
COMPARED: Final = "compared"
_OWN: Final = ("csrfmiddlewaretoken", "action", TELL, EXPECTED, COMPARED)


@dataclass(frozen=True)
class NewKeyView:
    """API key, or URL of webhooks, as shown on the one page that displays it."""

    source: str
    secret: str
    use: str = "key"


@for_members
@require_http_methods(["GET", "POST"])
def new_pipe(request: HttpRequest) -> HttpResponse:
    """Serve the editor for a new pipe, then the page with the key that waits for the first event."""
    chosen = selected_tenant(request)
    editing = EditorContext(access.get_tenant(viewer_of(request), chosen.id, access.CREATE_PIPE))
    if request.method != "POST":
        return _form(request, editing, _first_draft(request))
    draft = draft_from_post(request.POST, {})
    if (action := request.POST.get("action", "save")) != "save":
        return _changed(request, editing, draft, action)
    if _expected(request) is None:
        return _plan(request, editing, draft, wrong_expected=f"Enter a whole number from 0 to {MOST_EXPECTED}")
    if wrong := _add_channel(request, editing.tenant):
        return _plan(request, editing, draft, wrong=wrong)
    draft, pipe = _create(request, editing.tenant, draft)
    return _created(request, pipe) if pipe else _form(request, editing, draft, status=422)


@for_members
@require_http_methods(["GET", "POST"])
def edit_pipe(request: HttpRequest, pipe_id: str) -> HttpResponse:
    """Serve the editor for the next revision. `from` loads the spec of a revision, `shadow` that of a shadow run.

    Without them, the spec is that of the newest revision, or of the live one if the newest was rolled back or failed.
    """
    pipe = access.get_pipe(viewer_of(request), pipe_id, access.PUBLISH_REVISION)
    number = number_of(request.GET.get("from"))
    start = pipe.revisions.get(number=number) if number else services.current_revision(pipe)
    spec: Mapping[str, Any] = start.spec
    if rehearsed := request.GET.get("shadow", ""):
        spec = access.get_shadow(viewer_of(request), pipe_id, rehearsed).spec
    if request.method != "POST":
        draft = with_newest_event(draft_from_spec(pipe.name, spec, as_json=_wants_json(request)), pipe)
        newest = pipe.revisions.latest("number").number
        return _form(request, EditorContext(pipe.tenant, pipe, newest, start=start.number), draft)
    editing = EditorContext(pipe.tenant, pipe, number_of(request.POST.get("based_on")))
    draft = draft_from_post(request.POST, spec, name=pipe.name)
    if (action := request.POST.get("action", "save")) != "save":
        return _changed(request, editing, draft, action)
    return _publish(request, editing, pipe, draft)


def _first_draft(request: HttpRequest) -> Draft:
    """Return the draft of the template in `start`; without one, a minimal draft."""
    start = template_named(request.GET.get("start", ""))
    if start is None:
        return Draft(as_json=_wants_json(request), text=starting_text()).with_sample(EXAMPLE)
    return draft_of(start)


def _add_channel(request: HttpRequest, tenant: Tenant) -> str:
    """Add the e-mail address of the plan page as alert channel; return the error text, "" if none. Empty is skipped."""
    address = request.POST.get(TELL, "").strip()
    if not address:
        return ""
    try:
        access.get_tenant(viewer_of(request), tenant.id, access.CHANGE_CHANNELS)
        services.add_alert_channel(
            tenant=tenant, kind=AlertChannel.Kind.MAIL, target=address, now=timezone.now(), by=viewer_of(request)
        )
    except services.NameTakenError:
        return ""
    except services.InvalidValue as exc:
        return exc.reason
    except services.ServiceError as exc:
        return str(exc)
    return ""


def _expected(request: HttpRequest) -> int | None:
    """Return the expected events per second; 0 if empty, None if invalid."""
    typed = request.POST.get(EXPECTED, "").strip() or "0"
    return int(typed) if typed.isdecimal() and len(typed) < 8 and int(typed) <= MOST_EXPECTED else None


def _create(request: HttpRequest, tenant: Tenant, draft: Draft) -> tuple[Draft, Pipe | None]:
    """Create the pipe; on refusal return the draft with its errors and None."""
    try:
        spec = draft.document()
        author, expected = viewer_of(request), _expected(request) or 0
        return draft, services.create_pipe(
            tenant=tenant,
            name=draft.name,
            spec=spec,
            author=author,
            expected_per_s=expected,
            sample=_sample_of(draft),
        )
    except _REFUSED as exc:
        return _with_refusal(draft, exc), None


def _sample_of(draft: Draft) -> str:
    """Return the sample event as JSON in one line; "" if it is not JSON."""
    try:
        return json.dumps(json.loads(draft.sample), ensure_ascii=False)
    except (ValueError, RecursionError):
        return ""


def _with_refusal(draft: Draft, exc: Exception) -> Draft:
    """Return the draft with the error at its field, and with the fields that must not be empty."""
    return with_missing(_refused_at(draft, exc))


def _refused_at(draft: Draft, exc: Exception) -> Draft:
    match exc:
        case SpecError():
            return with_error(draft, exc.path, exc.reason)
        case services.InvalidValue():
            return replace(draft, errors={"name" if exc.field == "name" else "": exc.reason})
        case services.NameTakenError() | services.QuotaExceededError():
            return replace(draft, errors={"name": str(exc)})
        case SandboxRefused():
            return replace(draft, errors={"": str(exc)})
    return replace(draft, errors={"spec": f"Not valid JSON: {exc}"})


def _plan(
    request: HttpRequest, editing: EditorContext, draft: Draft, *, wrong: str = "", wrong_expected: str = ""
) -> HttpResponse:
    """Render the plan with the form in hidden fields; the editor if the draft is invalid.

    wrong: error of the alert address   wrong_expected: error of the expected rate
    """
    try:
        spec = draft.document()
        if editing.pipe is None:
            checked = services.check_new_pipe(tenant=editing.tenant, name=draft.name, spec=spec)
        else:
            checked = services.check_revision(pipe=editing.pipe, spec=spec)
    except _REFUSED as exc:
        return _form(request, editing, _with_refusal(draft, exc), status=422)
    kept = [name for name in request.POST if name not in _OWN and not name.startswith(PREFIX)]
    carried = [(name, value) for name in kept for value in request.POST.getlist(name)]
    needed = services.needed_credentials(editing.pipe, checked) if editing.pipe else []
    context = {
        "pipe": editing.pipe,
        "name": draft.name,
        "next_number": editing.based_on + 1,
        "plan": plan_preview(tenant=editing.tenant, spec=checked, pipe=editing.pipe, now=timezone.now()),
        "most_event_bytes": settings.PENSTOCK_MAX_EVENT_BYTES,
        "carried": carried,
        "asked_credentials": asked_credentials(needed),
        "tell": request.POST.get(TELL, viewer_of(request).email),
        "wrong": wrong,
        "expected": request.POST.get(EXPECTED, ""),
        "wrong_expected": wrong_expected,
        "admission": admission_policy(),
        "most_expected": MOST_EXPECTED,
        **_rollout(request, editing.pipe),
    }
    status = 422 if wrong or wrong_expected else 200
    return show(request, "pipes/plan.html", context, tenant=editing.tenant, status=status)


def _publish(request: HttpRequest, editing: EditorContext, pipe: Pipe, draft: Draft) -> HttpResponse:
    try:
        spec = draft.document()
        services.publish_revision(
            pipe=pipe,
            spec=spec,
            based_on=editing.based_on,
            author=viewer_of(request),
            credentials=posted_credentials(request.POST),
            at_once=_rollout(request, pipe)["at_once"],
            must_change=True,
        )
    except services.UnchangedError as exc:
        return _form(request, editing, replace(draft, errors={"": str(exc)}), status=422)
    except services.CredentialNeededError as exc:
        asked = {"asked_credentials": asked_credentials(exc.needed)}
        return _form(request, editing, draft, status=422, more=asked)
    except (services.RevisionConflictError, services.PipeClosedError) as exc:
        newest = pipe.revisions.latest("number").number
        return _form(request, replace(editing, based_on=newest, conflict=str(exc)), draft, status=409)
    except _REFUSED as exc:
        return _form(request, editing, _with_refusal(draft, exc), status=422)
    return redirect("console:pipe", pipe.id)


def _changed(request: HttpRequest, editing: EditorContext, draft: Draft, action: str) -> HttpResponse:
    """Render the editor after an action that does not save. For a dry run, htmx swaps the results out of band."""
    if action == "plan":
        return _plan(request, editing, draft)
    if action == "compare" and editing.pipe is not None:
        return _compared(request, editing, editing.pipe, draft)
    if action == "rehearse" and editing.pipe is not None:
        return _rehearsal(request, editing, editing.pipe, draft)
    preset = preset_named(request.POST.get("preset", "")) if action == "add.destination" else None
    if action == "newest" and editing.pipe is not None:
        draft = with_newest_event(draft, editing.pipe)
    elif action == "stored" and editing.pipe is not None:
        draft = with_stored_sample(draft, editing.pipe)
    elif action == "as-json" and not draft.as_json:
        draft = draft.written_as_json()
    elif action == "as-form" and draft.as_json:
        draft = _as_form(draft)
    elif action.startswith("echo.") and settings.PENSTOCK_ECHO_URL:
        draft = with_url(draft, action, settings.PENSTOCK_ECHO_URL)
    elif (place := place_of(draft, action, "test")) is not None:
        draft = _with_test(request, editing, draft, place)
    elif preset is not None:
        draft = with_preset(draft, preset)
    else:
        draft = apply_action(draft, action)
    is_htmx = "HX-Request" in request.headers
    compared = request.POST.get(COMPARED, "")
    is_stale = compared and compared != digest_of(draft)
    swap_context = {"swaps": is_htmx and action == "try", "is_stale": is_stale, "added_preset": preset}
    return _form(request, editing, draft, part="editor" if is_htmx else "", more=swap_context)


def _compared(request: HttpRequest, editing: EditorContext, pipe: Pipe, draft: Draft) -> HttpResponse:
    """Render the editor with a comparison of the draft with the live revision, or with the reason why there is none."""
    more: dict[str, Any] = {}
    try:
        spec = draft.document()
        services.check_revision(pipe=pipe, spec=spec)
        if wait_s := hit(COMPARISONS, str(viewer_of(request).pk), timezone.now()):
            raise NotComparableError(f"You compared too often. Compare again in {wait_s} s.")
        more = {"comparison": comparison_panel(compare_with_live(pipe, spec)), COMPARED: digest_of(draft)}
    except (NotComparableError, SandboxRefused) as exc:
        more["comparison_error"] = str(exc)
    except RecordUnavailableError as exc:
        more["comparison_error"] = f"The newest events cannot be read: {exc.with_advice('Compare again in a minute.')}"
    except _REFUSED as exc:
        draft = _with_refusal(draft, exc)
        more = {
            "comparison_error": "Correct the marked fields, then compare again.",
            "first_error": first_target(draft),
        }
    return _form(request, editing, draft, part="editor" if "HX-Request" in request.headers else "", more=more)


def _rehearsal(request: HttpRequest, editing: EditorContext, pipe: Pipe, draft: Draft) -> HttpResponse:
    """Render the choice of the events that the draft is rehearsed on; the editor if the draft cannot be rehearsed."""
    now, asked = timezone.now(), services.ShadowRequest()
    try:
        checked = services.check_shadow(
            pipe=pipe, spec=draft.document(), based_on=editing.based_on, request=asked, now=now
        )
    except services.RevisionConflictError as exc:
        newest = pipe.revisions.latest("number").number
        return _form(request, replace(editing, based_on=newest, conflict=str(exc)), draft, status=409)
    except _REFUSED as exc:
        return _form(request, editing, _with_refusal(draft, exc), status=422)
    except services.ServiceError as exc:
        return _form(request, editing, replace(draft, errors={"": str(exc)}), status=422)
    context = pipe_context(pipe, "shadows") | new_shadow_context(request.POST, checked)
    return show(request, "shadows/new.html", context, tenant=pipe.tenant)


def _with_test(request: HttpRequest, editing: EditorContext, draft: Draft, place: int) -> Draft:
    """Request a test of the destination at index `place`; return the draft with the test's id, or with the error."""
    tenant = access.get_tenant(viewer_of(request), editing.tenant.id, access.SEND_TEST)
    row = draft.destinations[place]
    if not row.url.strip():
        return replace(draft, errors={f"destination-{place}-url": URL_NEEDED})
    try:
        test = request_draft_test(
            tenant=tenant,
            spec=draft.document_to_try(),
            destination=row.name,
            event=event_of(draft),
            source=draft.sample_source,
            by=viewer_of(request),
            now=timezone.now(),
            pipe=editing.pipe,
        )
    except SpecError as exc:
        return with_error(draft, exc.path, exc.reason)
    except (services.ServiceError, SandboxRefused) as exc:
        return replace(draft, errors={f"destination-{place}": str(exc)})
    return with_destination(draft, place, replace(row, test=test.id))


def _as_form(draft: Draft) -> Draft:
    """Return the draft in form mode; in JSON mode with the reason if the form cannot represent it."""
    try:
        return draft.shown_as_form()
    except SpecError as exc:
        return with_error(draft, exc.path, exc.reason)
    except ValueError as exc:
        return replace(draft, errors={"spec": f"Not valid JSON: {exc}"})
    except NotEditableAsForm:
        return replace(
            draft, errors={"spec": "The form cannot represent this spec without changing it. Keep editing as JSON."}
        )


def _form(
    request: HttpRequest,
    editing: EditorContext,
    draft: Draft,
    *,
    part: str = "",
    status: int = 200,
    more: Mapping[str, Any] | None = None,
) -> HttpResponse:
    context = {
        **page_context(editing, draft),
        "starts": STARTS if editing.pipe is None else (),
        "start": request.GET.get("start", ""),
        "echo_url": settings.PENSTOCK_ECHO_URL,
        "curl": _curl(editing, draft),
        "first_error": first_target(draft) if status == 422 else "",
        "revert_to": services.earlier_live_revision(editing.pipe) if editing.pipe else None,
        **_rollout(request, editing.pipe),
        **(more or {}),
    }
    return show(request, "pipes/form.html", context, tenant=editing.tenant, part=part, status=status)


@sensitive_variables("keys", "key", "secret")
def _created(request: HttpRequest, pipe: Pipe) -> HttpResponse:
    """Render the response to the POST directly: the keys must not be stored in a session for a redirect."""
    keys: list[NewKeyView] = []
    try:
        keys.extend(
            NewKeyView(source.name, services.create_api_key(source=source, label="first", by=viewer_of(request))[1])
            for source in pipe.sources.order_by("id")
        )
    except services.QuotaExceededError as exc:
        messages.error(request, f"{pipe.name} has no key yet. {exc}", extra_tags="bad")
    context = {
        "pipe": pipe,
        "standing": pipe_statuses([pipe])[pipe.id],
        "get_first": once(partial(first_delivery, pipe.id)),
        "keys": keys,
        "signing": [
            (one.name, services.signing_secrets(destination=one)[0])
            for one in pipe.destinations.filter(config__type="http").order_by("id")
        ],
        "endpoint": endpoint(ingest_url()),
        "snippets": send_snippets(ingest_url=ingest_url(), key=keys[0].secret if keys else "", sample=pipe.sample),
        "curl": as_curl("pipes/", {"name": pipe.name, "spec": pipe.revisions.get(number=1).spec}),
    }
    return show(request, "pipes/created.html", context, tenant=pipe.tenant)


def _rollout(request: HttpRequest, pipe: Pipe | None) -> dict[str, Any]:
    """Return the chosen rollout of the next revision; by default all at once if the live revision is failing."""
    if pipe is None:
        return {}
    failing = services.is_live_failing(pipe)
    chosen = request.POST.get(ROLLOUT, "")
    at_once = chosen == "at-once" if chosen in ("ramp", "at-once") else failing
    return {"at_once": at_once, "live_failing": failing, "ramp_steps": ramp_policy().steps}


def _wants_json(request: HttpRequest) -> bool:
    return request.GET.get("mode") == "json"


def _with_urls(spec: dict[str, Any]) -> dict[str, Any]:
    """Return a spec with an example URL for each destination whose URL is not entered yet, so that it can be sent."""
    destinations = {
        name: {**one, "url": _EXAMPLE_URL} if one.get("url") == "" else one
        for name, one in spec.get("destinations", {}).items()
    }
    return {**spec, "destinations": destinations}


def _curl(editing: EditorContext, draft: Draft) -> str:
    try:
        spec = draft.document()
    except (ValueError, SpecError):
        spec = dict(draft.base)
    if editing.pipe is None:
        return as_curl("pipes/", {"name": draft.name or "orders", "spec": _with_urls(spec)})
    return as_curl(f"pipes/{editing.pipe.id}/revisions/", {"based_on": editing.based_on, "spec": spec})
