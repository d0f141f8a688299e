"""Form of a new replay: rehearse it, or confirm and start it."""

from datetime import datetime
from typing import Any, Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from dataplane.spec import parse_pipe_spec
from mgmt import services
from mgmt.models import Pipe, PipeRevision
from mgmt.pipes.page_context import newest_revision, pipe_context
from mgmt.quotas.queries import quotas_for
from mgmt.replays.form import (
    ReplayForm,
    ReplayOptions,
    destination_choices,
    posted_values,
    revision_choices,
    start_values,
    values_of,
)
from mgmt.replays.queries import replay_under_way
from mgmt.web import access
from mgmt.web.rendering import as_curl, for_members, show, viewer_of

MOST_REVISIONS: Final = 100
REVIEW, START, REHEARSE, EDIT = "review", "start", "rehearse", "edit"


@for_members
@require_http_methods(["GET", "POST"])
def new_replay(request: HttpRequest, pipe_id: str) -> HttpResponse:
    """Serve the form of a replay; a POST shows what it will do, and starts it once that is confirmed.

    `from`, `to`, `destination` and `ids` fill in the form, and `like` the settings of an earlier replay.
    """
    pipe = access.get_pipe(viewer_of(request), pipe_id, access.MOVE_MESSAGES)
    now = timezone.now()
    options = _options(pipe, now)
    if request.method != "POST":
        return _form_page(request, pipe, ReplayForm(options, initial=_initial(request, pipe, options)))
    if (action := request.POST.get("action", REVIEW)) == EDIT:
        return _form_page(request, pipe, ReplayForm(options, initial=posted_values(request.POST)))
    form = ReplayForm(options, data=request.POST)
    if not form.is_valid():
        return _form_page(request, pipe, form, status=422)
    return _submitted(request, pipe, form, action, now)


def _submitted(request: HttpRequest, pipe: Pipe, form: ReplayForm, action: str, now: datetime) -> HttpResponse:
    asked, by = form.replay_request(rehearsal=action == REHEARSE), viewer_of(request)
    try:
        if action not in (START, REHEARSE):
            checked = services.check_replay(pipe=pipe, request=asked, by=by, now=now)
            return _review(request, pipe, asked, checked)
        replay = services.start_replay(pipe=pipe, request=asked, by=by, now=now)
    except services.InvalidValue as exc:
        form.add_refusal(exc.field, exc.reason)
        return _form_page(request, pipe, form, status=422)
    except services.ServiceError as exc:
        return _form_page(request, pipe, form, refused=str(exc), status=422)
    messages.success(request, "Rehearsal started. Nothing is sent." if replay.rehearsal else "Replay started.", "fine")
    return redirect("console:replay", pipe.id, replay.id)


def _review(
    request: HttpRequest, pipe: Pipe, asked: services.ReplayRequest, checked: services.CheckedReplay
) -> HttpResponse:
    """Render what the replay will do; the form is in hidden fields, with the revision that was shown."""
    carried = [(name, value) for name in ReplayForm.base_fields for value in request.POST.getlist(name)]
    context = pipe_context(pipe, "replays") | {
        "asked": asked,
        "checked": checked,
        "carried": [one for one in carried if one[0] != "revision"] + [("revision", str(checked.revision))],
    }
    return show(request, "replays/review.html", context, tenant=pipe.tenant)


def _form_page(
    request: HttpRequest, pipe: Pipe, form: ReplayForm, *, refused: str = "", status: int = 200
) -> HttpResponse:
    if form.is_bound:
        form.focus_first_error()
    context = pipe_context(pipe, "replays") | {
        "form": form,
        "refused": refused,
        "other": replay_under_way(pipe.tenant_id),
        "curl": as_curl(f"pipes/{pipe.id}/replays/", _body(form)),
    }
    return show(request, "replays/new.html", context, tenant=pipe.tenant, status=status)


def _body(form: ReplayForm) -> dict[str, Any]:
    """Return the body of the API call that rehearses the form as it was filled in."""
    times = {name: f"{form[name].value() or ''}Z" for name in ("since", "until")}
    return times | {"destinations": form.selected(), "rehearsal": True}


def _initial(request: HttpRequest, pipe: Pipe, options: ReplayOptions) -> dict[str, Any]:
    if like := request.GET.get("like", ""):
        return values_of(access.get_replay(viewer_of(request), pipe.id, like))
    return start_values(request.GET, options)


def _options(pipe: Pipe, now: datetime) -> ReplayOptions:
    spec = parse_pipe_spec(newest_revision(pipe).spec)
    published = pipe.revisions.exclude(state=PipeRevision.State.FAILED).filter(published_offset__isnull=False)
    return ReplayOptions(
        destination_choices(spec, dict(pipe.destinations.values_list("name", "state"))),
        revision_choices(published.order_by("-number").only("number", "state")[:MOST_REVISIONS]),
        quotas_for(pipe.tenant_id).replay_units_per_s,
        now,
    )
