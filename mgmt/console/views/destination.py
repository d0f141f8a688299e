"""One destination: its state, what it did not get and why, its settings and its latest attempts."""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST, require_safe

from mgmt import access, services
from mgmt.console.credential_form import CredentialForm
from mgmt.console.lines import alert_line, held_line
from mgmt.console.pages import as_curl, do_and_say, for_members, once, part_of, show, viewer_of
from mgmt.console.test_requests import tried
from mgmt.console.told import shown_attempts
from mgmt.console.troubles import trouble_line, troubles_of
from mgmt.console.views.pipe import shared
from mgmt.models import Destination, Pipe
from mgmt.queries.alerts import open_alerts_by_need
from mgmt.queries.attempts import Filter
from mgmt.queries.breakers import breaker_of
from mgmt.queries.delivery import standing_of
from mgmt.queries.minutes import minute_lines
from mgmt.queries.span import Span, span_until
from mgmt.queries.test_requests import latest_tests
from mgmt.services.destinations import needed_credential
from mgmt.services.test_requests import TEST_BODY

MOST_ATTEMPTS: Final = 10
MOST_ALERTS: Final = 10
MOST_TESTS: Final = 5
_PARTS: Final = dict.fromkeys(("state", "now", "attempts"), "destination.html")


@for_members
@require_safe
def destination(request: HttpRequest, pipe_id: str, name: str) -> HttpResponse:
    """Does it get what it is due, if not why, and what can be done."""
    row = access.get_destination(viewer_of(request), pipe_id, name)
    return _page(request, access.get_pipe(viewer_of(request), pipe_id), row)


@for_members
@require_POST
def pause(request: HttpRequest, pipe_id: str, name: str) -> HttpResponse:
    """Nothing more is sent to it; its messages are held."""
    deed = partial(services.pause_destination, by=viewer_of(request))
    return _move(request, pipe_id, name, deed, f"{name} is paused: its messages are held until you resume it.")


@for_members
@require_POST
def resume(request: HttpRequest, pipe_id: str, name: str) -> HttpResponse:
    """It is sent to again, what is held first."""
    deed = partial(services.resume_destination, by=viewer_of(request))
    return _move(request, pipe_id, name, deed, f"{name} is sent to again; what is held follows in order.")


@for_members
@require_POST
@sensitive_post_parameters()
def credential(request: HttpRequest, pipe_id: str, name: str) -> HttpResponse:
    """Stores the secret of its credentials; nothing shows it again."""
    row = access.get_destination(viewer_of(request), pipe_id, name, access.SET_CREDENTIAL)
    pipe = access.get_pipe(viewer_of(request), pipe_id)
    form = CredentialForm(needed_credential(row.config), request.POST.dict())
    if not form.is_valid():
        return _page(request, pipe, row, form=form, status=422)
    try:
        services.set_credential(destination=row, credential=form.cleaned_data)
    except services.InvalidValue as exc:
        form.add_error(exc.field if exc.field in form.fields else None, exc.reason)
        return _page(request, pipe, row, form=form, status=422)
    except services.DestinationGone as exc:
        form.add_error(None, str(exc))
        return _page(request, pipe, row, form=form, status=409)
    messages.success(request, f"The credential of {name} is stored. It is used from the next request on.", "fine")
    return redirect("console:destination", pipe_id, name)


def _move(request: HttpRequest, pipe_id: str, name: str, deed: Callable[..., bool], words: str) -> HttpResponse:
    row = access.get_destination(viewer_of(request), pipe_id, name, access.PAUSE)
    do_and_say(request, partial(deed, destination=row), words)
    return redirect("console:destination", pipe_id, name)


def _page(
    request: HttpRequest, pipe: Pipe, row: Destination, *, form: CredentialForm | None = None, status: int = 200
) -> HttpResponse:
    now = timezone.now()
    needed = needed_credential(row.config)
    alerts = open_alerts_by_need(pipe_ids=[pipe.id]).filter(destination=row.name)
    context: dict[str, Any] = shared(pipe, "settings") | {
        "destination": row,
        "now": now,
        "needed": needed,
        "credential_form": form or CredentialForm(needed),
        "get_breaker": once(partial(breaker_of, pipe_id=pipe.id, destination=row.name, now=now)),
        "get_held": once(lambda: held_line(standing_of(destination=row))),
        "get_alerts": once(lambda: [alert_line(one) for one in alerts[:MOST_ALERTS]]),
        "get_bins": once(partial(_bins, pipe.id, row.name, span_until("1h", now))),
        "get_troubles": once(lambda: [trouble_line(t) for t in troubles_of([pipe], now) if t.where == row.name]),
        "get_attempts": once(partial(shown_attempts, pipe.id, MOST_ATTEMPTS, Filter(destination=row.name))),
        "test_body": TEST_BODY,
        "get_tests": once(lambda: [tried(one) for one in latest_tests(row)[:MOST_TESTS]]),
        "curl": as_curl(request, f"pipes/{pipe.id}/destinations/{row.name}/"),
    }
    template, part = part_of(request, _PARTS) or ("destination.html", "")
    return show(request, template, context, tenant=pipe.tenant, part=part, status=status)


def _bins(pipe_id: str, name: str, span: Span) -> dict[str, int]:
    """How many units are in each bin at this destination."""
    found: dict[str, int] = {}
    for line in minute_lines([pipe_id], span).get(pipe_id, []):
        for part in line.destinations:
            for bin_, count in part.bins.items() if part.name == name else ():
                found[bin_] = found.get(bin_, 0) + count
    return found
