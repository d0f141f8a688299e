"""Home: is everything delivered, and if not, what and since when; and the pipes."""

from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Final
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from mgmt import access
from mgmt.console.pages import as_curl, for_members, once, part_of, show, tenant_of, viewer_of
from mgmt.console.wording import trouble_in_words, what_to_do
from mgmt.models import Pipe
from mgmt.queries.pipes import PipeLine, pipe_lines
from mgmt.queries.span import Span, bucket_at, span_until
from mgmt.queries.undelivered import Trouble, undelivered

DAY_MIN: Final = 24 * 60
_PARTS: Final = {"undelivered": "home.html", "pipes": "home.html"}


@dataclass(frozen=True)
class TroubleLine:
    """A cause in words, and where to look."""

    fact: Trouble
    words: str
    todo: str
    link: str


@for_members
@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """The viewer's pipes in the chosen tenant; `q` filters them by name."""
    tenant, now, q = tenant_of(request), timezone.now(), request.GET.get("q", "").strip()
    pipes = list(access.pipes_of(viewer_of(request)).filter(tenant=tenant).order_by("name")) if tenant else []
    found = [pipe for pipe in pipes if q.lower() in pipe.name.lower()]
    troubles = once(partial(_troubles, pipes, now))
    context = {
        "q": q,
        "now": now,
        "has_pipes": bool(pipes),
        "get_troubles": once(lambda: [_trouble_line(trouble) for trouble in troubles()]),
        "get_trouble_sum": once(lambda: _sum(troubles())),
        "get_lines": once(lambda: _lines(found, troubles(), now)),
        "curl": as_curl(request, "pipes/"),
    }
    template, part = part_of(request, _PARTS) or ("home.html", "")
    return show(request, template, context, tenant=tenant, part=part)


def _troubles(pipes: list[Pipe], now: datetime) -> list[Trouble]:
    last = bucket_at(now)
    return undelivered(pipes=pipes, span=Span("24h", last - DAY_MIN, last)) if pipes else []


def _lines(pipes: list[Pipe], troubles: list[Trouble], now: datetime) -> list[PipeLine]:
    return pipe_lines(pipes=pipes, troubles=troubles, span=span_until("1h", now), now=now) if pipes else []


def _sum(troubles: list[Trouble]) -> dict[str, object]:
    return {
        "messages": sum(trouble.count for trouble in troubles),
        "since": min((trouble.since for trouble in troubles), default=None),
    }


def _trouble_line(trouble: Trouble) -> TroubleLine:
    outcome = {"retrying": "parked", "dead": "dead"}.get(trouble.bin, "")
    if trouble.where and outcome:
        query = urlencode({"outcome": outcome, "destination": trouble.where})
        link = f"{reverse('console:attempts', args=[trouble.pipe_id])}?{query}"
    else:
        minute = bucket_at(trouble.since)
        link = f"{reverse('console:minute', args=[trouble.pipe_id, minute])}?{urlencode({'bin': trouble.bin})}"
    return TroubleLine(
        fact=trouble,
        words=trouble_in_words(
            bin_=trouble.bin,
            where=trouble.where,
            cause=trouble.cause,
            reason=trouble.reason,
            status=trouble.status,
        ),
        todo=what_to_do(trouble.bin, trouble.cause),
        link=link,
    )
