"""A pipe's standing: closed and opened again, paused and resumed."""

from collections.abc import Callable
from functools import partial

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_POST

from mgmt import access, services
from mgmt.console.pages import do_and_say, for_members, show, viewer_of


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
    do_and_say(request, partial(services.reopen_pipe, pipe=pipe), f"{pipe.name} takes events again.")
    return redirect("console:pipe", pipe.id)


@for_members
@require_POST
def pause_pipe(request: HttpRequest, pipe_id: str) -> HttpResponse:
    """Accepts and holds, for every destination."""
    return _move(request, pipe_id, services.pause_pipe, "is paused: it accepts events and holds them.")


@for_members
@require_POST
def resume_pipe(request: HttpRequest, pipe_id: str) -> HttpResponse:
    """Delivers again, what is held first."""
    return _move(request, pipe_id, services.resume_pipe, "delivers again; what is held goes out in order.")


def _move(request: HttpRequest, pipe_id: str, deed: Callable[..., object], words: str) -> HttpResponse:
    pipe = access.get_pipe(viewer_of(request), pipe_id, access.PAUSE)
    do_and_say(request, partial(deed, pipe=pipe), f"{pipe.name} {words}")
    return redirect("console:pipe", pipe.id)
