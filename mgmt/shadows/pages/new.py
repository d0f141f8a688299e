"""Form of a new shadow run: choose the events that a draft is rehearsed on, and start it."""

from datetime import datetime

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from dataplane.spec import SpecError
from mgmt import services
from mgmt.models import Pipe
from mgmt.pipes.page_context import newest_revision, pipe_context
from mgmt.shadows.form import ShadowForm, carried_fields, values_of
from mgmt.tenancy.services.rate_limits import hit
from mgmt.web import access
from mgmt.web.rendering import for_members, show, viewer_of
from mgmt.web.throttling import COMPARISONS


@for_members
@require_http_methods(["GET", "POST"])
def new_shadow(request: HttpRequest, pipe_id: str) -> HttpResponse:
    """Start a run of the draft that the editor has posted; `like` fills in the draft of an earlier run."""
    pipe = access.get_pipe(viewer_of(request), pipe_id, access.PUBLISH_REVISION)
    now = timezone.now()
    if request.method != "POST":
        if not (like := request.GET.get("like", "")):
            return redirect("console:edit_pipe", pipe.id)
        earlier = access.get_shadow(viewer_of(request), pipe.id, like)
        newest = pipe.revisions.latest("number").number
        return _form_page(request, pipe, ShadowForm(initial=values_of(earlier, newest, now)), like=earlier.id)
    form = ShadowForm(request.POST)
    if not form.is_valid():
        return _form_page(request, pipe, form, status=422)
    return _submitted(request, pipe, form, now)


def _submitted(request: HttpRequest, pipe: Pipe, form: ShadowForm, now: datetime) -> HttpResponse:
    found = form.cleaned_data
    if wait_s := hit(COMPARISONS, str(viewer_of(request).pk), now):
        return _form_page(request, pipe, form, refused=f"too many starts. Try again in {wait_s} s.", status=429)
    try:
        shadow = services.start_shadow(
            pipe=pipe, spec=found["document"], based_on=found["based_on"], request=form.shadow_request(),
            by=viewer_of(request), now=now,
        )  # fmt: skip
    except services.InvalidValue as exc:
        form.add_refusal(exc.field, exc.reason)
        return _form_page(request, pipe, form, status=422)
    except SpecError as exc:
        return _form_page(request, pipe, form, refused=f"the draft is not valid any more: {exc}.", status=422)
    except services.ServiceError as exc:
        return _form_page(request, pipe, form, refused=str(exc), status=409)
    messages.success(request, "Shadow run started. Nothing is sent.", "fine")
    return redirect("console:shadow", pipe.id, shadow.id)


def _form_page(
    request: HttpRequest, pipe: Pipe, form: ShadowForm, *, refused: str = "", like: str = "", status: int = 200
) -> HttpResponse:
    context = pipe_context(pipe, "shadows") | {
        "form": form,
        "live": newest_revision(pipe).number,
        "refused": refused,
        "like": like,
        "carried": carried_fields(request.POST),
    }
    return show(request, "shadows/new.html", context, tenant=pipe.tenant, status=status)
