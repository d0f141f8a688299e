"""Home: is everything delivered, and if not, what and since when; and the pipes."""

from datetime import datetime
from functools import partial
from typing import Final
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from mgmt import access
from mgmt.console.pages import as_curl, for_members, once, part_of, show, tenant_of, viewer_of
from mgmt.console.troubles import trouble_line, troubles_of
from mgmt.models import Pipe
from mgmt.queries.find import is_name_of_a_message
from mgmt.queries.pipes import PipeLine, pipe_lines
from mgmt.queries.span import span_until
from mgmt.queries.undelivered import Trouble

_PARTS: Final = {"undelivered": "home.html", "pipes": "home.html"}


@for_members
@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """The viewer's pipes in the chosen tenant; `q` filters them by name, or is the id or position of a message."""
    tenant, now, q = tenant_of(request), timezone.now(), request.GET.get("q", "").strip()
    if is_name_of_a_message(q):
        return redirect(f"{reverse('console:find')}?{urlencode({'q': q})}")
    pipes = list(access.pipes_of(viewer_of(request)).filter(tenant=tenant).order_by("name")) if tenant else []
    found = [pipe for pipe in pipes if q.lower() in pipe.name.lower()]
    troubles = once(partial(troubles_of, pipes, now))
    context = {
        "q": q,
        "now": now,
        "has_pipes": bool(pipes),
        "get_troubles": once(lambda: [trouble_line(trouble) for trouble in troubles()]),
        "get_trouble_sum": once(lambda: _sum(troubles())),
        "get_lines": once(lambda: _lines(found, troubles(), now)),
        "curl": as_curl(request, "pipes/"),
    }
    template, part = part_of(request, _PARTS) or ("home.html", "")
    return show(request, template, context, tenant=tenant, part=part)


def _lines(pipes: list[Pipe], troubles: list[Trouble], now: datetime) -> list[PipeLine]:
    return pipe_lines(pipes=pipes, troubles=troubles, span=span_until("1h", now), now=now) if pipes else []


def _sum(troubles: list[Trouble]) -> dict[str, object]:
    return {
        "messages": sum(trouble.count for trouble in troubles),
        "since": min((trouble.since for trouble in troubles), default=None),
    }
