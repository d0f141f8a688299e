"""One destination: state, undelivered messages with causes, settings and latest attempts."""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST, require_safe

from mgmt import services
from mgmt.alerts.queries.alerts import open_alerts_by_need
from mgmt.deliveries.attempt_views import attempt_views
from mgmt.deliveries.credential_form import CredentialForm
from mgmt.deliveries.presenters import alert_line, held_group
from mgmt.deliveries.queries.attempts import AttemptFilter
from mgmt.deliveries.queries.breakers import breaker_of
from mgmt.deliveries.queries.delivery import delivery_state
from mgmt.deliveries.services.destinations import needed_credential
from mgmt.deliveries.undelivered_views import problem_line, problems_of
from mgmt.delivery_tests.presenters import delivery_test_result
from mgmt.delivery_tests.queries import latest_tests
from mgmt.delivery_tests.services import TEST_BODY
from mgmt.ledger.queries.bucket_range import span_until
from mgmt.ledger.queries.minutes import bins_at
from mgmt.models import Destination, Pipe
from mgmt.pipes.page_context import pipe_context
from mgmt.replays.presenters import backfill_line
from mgmt.replays.queries import backfills_of
from mgmt.web import access
from mgmt.web.rendering import act_and_report, as_curl, for_members, once, show, viewer_of

MOST_ATTEMPTS: Final = 10
MOST_ALERTS: Final = 10
MOST_TESTS: Final = 5
_LIVE: Final = {
    "head": "pipes/base.html",
    **dict.fromkeys(("state", "now", "attempts"), "deliveries/destination.html"),
}


@for_members
@require_safe
def destination(request: HttpRequest, pipe_id: str, name: str) -> HttpResponse:
    """Show whether a destination receives its messages, why not, and the next steps."""
    row = access.get_destination(viewer_of(request), pipe_id, name)
    return _page(request, access.get_pipe(viewer_of(request), pipe_id), row)


@for_members
@require_POST
def pause(request: HttpRequest, pipe_id: str, name: str) -> HttpResponse:
    """Pause a destination: its messages are held."""
    action = partial(services.pause_destination, by=viewer_of(request))
    return _move(request, pipe_id, name, action, f"{name} is paused. Its messages are held until you resume it.")


@for_members
@require_POST
def resume(request: HttpRequest, pipe_id: str, name: str) -> HttpResponse:
    """Resume a destination: held messages are delivered first."""
    action = partial(services.resume_destination, by=viewer_of(request))
    return _move(request, pipe_id, name, action, f"{name} is active again. Held messages are delivered in order.")


@for_members
@require_POST
@sensitive_post_parameters()
def credential(request: HttpRequest, pipe_id: str, name: str) -> HttpResponse:
    """Store the secret of a destination's credentials; it is never shown again."""
    row = access.get_destination(viewer_of(request), pipe_id, name, access.SET_CREDENTIAL)
    pipe = access.get_pipe(viewer_of(request), pipe_id)
    form = CredentialForm(needed_credential(row.config), request.POST.dict())
    if not form.is_valid():
        return _page(request, pipe, row, form=form, status=422)
    try:
        services.set_credential(destination=row, credential=form.cleaned_data, by=viewer_of(request))
    except services.InvalidValue as exc:
        form.add_error(exc.field if exc.field in form.fields else None, exc.reason)
        return _page(request, pipe, row, form=form, status=422)
    except services.DestinationRemovedError as exc:
        form.add_error(None, str(exc))
        return _page(request, pipe, row, form=form, status=409)
    messages.success(request, f"Credentials of {name} saved. They apply to the next request.", "fine")
    return redirect("console:destination", pipe_id, name)


def _move(request: HttpRequest, pipe_id: str, name: str, action: Callable[..., bool], words: str) -> HttpResponse:
    row = access.get_destination(viewer_of(request), pipe_id, name, access.PAUSE)
    act_and_report(request, partial(action, destination=row), words)
    return redirect("console:destination", pipe_id, name)


def _page(
    request: HttpRequest, pipe: Pipe, row: Destination, *, form: CredentialForm | None = None, status: int = 200
) -> HttpResponse:
    now = timezone.now()
    needed = needed_credential(row.config)
    alerts = open_alerts_by_need(pipe_ids=[pipe.id]).filter(destination=row.name)
    backfills = backfills_of(pipe).filter(destination=row.name)
    context: dict[str, Any] = pipe_context(pipe, "settings") | {
        "destination": row,
        "now": now,
        "needed": needed,
        "credential_form": form or CredentialForm(needed),
        "get_breaker": once(partial(breaker_of, pipe_id=pipe.id, destination=row.name, now=now)),
        "get_held": once(lambda: held_group(delivery_state(destination=row))),
        "get_alerts": once(lambda: [alert_line(one) for one in alerts[:MOST_ALERTS]]),
        "get_bins": once(partial(bins_at, pipe_id=pipe.id, destination=row.name, span=span_until("1h", now))),
        "get_troubles": once(lambda: [problem_line(t) for t in problems_of([pipe], now) if t.where == row.name]),
        "get_attempts": once(partial(attempt_views, pipe.id, MOST_ATTEMPTS, AttemptFilter(destination=row.name))),
        "get_backfill": once(lambda: next((backfill_line(one, now) for one in backfills[:1]), None)),
        "test_body": TEST_BODY,
        "get_tests": once(lambda: [delivery_test_result(one) for one in latest_tests(row)[:MOST_TESTS]]),
        "curl": as_curl(f"pipes/{pipe.id}/destinations/{row.name}/"),
    }
    return show(request, "deliveries/destination.html", context, tenant=pipe.tenant, live=_LIVE, status=status)
