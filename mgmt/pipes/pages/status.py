"""Actions on the state of a pipe: close, reopen, pause and resume."""

from collections.abc import Callable
from functools import partial

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_POST

from dataplane.causes import Cause
from mgmt import services
from mgmt.deliveries.queries.message_selection import held_before_steps
from mgmt.web import access
from mgmt.web.rendering import act_and_report, for_members, show, viewer_of


@for_members
@require_http_methods(["GET", "POST"])
def close_pipe(request: HttpRequest, pipe_id: str) -> HttpResponse:
    """Close a pipe, after its name was typed as confirmation."""
    pipe = access.get_pipe(viewer_of(request), pipe_id, access.CLOSE_PIPE)
    typed = request.POST.get("typed", "").strip()
    if request.method == "POST" and typed == pipe.name:
        services.close_pipe(pipe=pipe, by=viewer_of(request))
        return redirect("console:pipe", pipe.id)
    context = {"pipe": pipe, "wrong": typed or ("nothing" if request.method == "POST" else "")}
    return show(request, "pipes/close.html", context, tenant=pipe.tenant, status=422 if context["wrong"] else 200)


@for_members
@require_POST
def reopen_pipe(request: HttpRequest, pipe_id: str) -> HttpResponse:
    """Reopen a closed pipe."""
    pipe = access.get_pipe(viewer_of(request), pipe_id, access.CLOSE_PIPE)
    act_and_report(
        request,
        partial(services.reopen_pipe, pipe=pipe, by=viewer_of(request)),
        f"{pipe.name} is open again and accepts events.",
    )
    return redirect("console:pipe", pipe.id)


@for_members
@require_POST
def pause_pipe(request: HttpRequest, pipe_id: str) -> HttpResponse:
    """Pause a pipe: it accepts events and holds them for every destination."""
    return _move(request, pipe_id, services.pause_pipe, "is paused: it accepts events and holds them.")


@for_members
@require_POST
def resume_pipe(request: HttpRequest, pipe_id: str) -> HttpResponse:
    """Resume a pipe: held events are delivered first. If its steps failed, one held event is tested before the rest."""
    pipe = access.get_pipe(viewer_of(request), pipe_id, access.PAUSE)
    tests_first = pipe.state_cause == Cause.DEAD_RATE and held_before_steps(pipe_id=pipe.id) is not None
    without_fix = request.POST.get("without_fix") == "1"
    words = (
        "stays paused while one held event runs through the steps. If it passes, the pipe resumes automatically."
        if tests_first
        else "is active again. Held events are delivered in order."
    )
    resume = partial(services.resume_pipe, pipe=pipe, by=viewer_of(request), without_fix=without_fix)
    act_and_report(request, resume, f"{pipe.name} {words}")
    return redirect("console:pipe", pipe.id)


def _move(request: HttpRequest, pipe_id: str, action: Callable[..., object], words: str) -> HttpResponse:
    pipe = access.get_pipe(viewer_of(request), pipe_id, access.PAUSE)
    act_and_report(request, partial(action, pipe=pipe, by=viewer_of(request)), f"{pipe.name} {words}")
    return redirect("console:pipe", pipe.id)
