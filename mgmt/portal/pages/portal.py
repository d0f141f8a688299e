"""Customer portal: one endpoint, in a frame of the tenant's site. The token in the address is the only credential.

No cookie is read or set, so that no other site can act for a visitor, and a frame works where browsers block cookies.
"""

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

from csp.constants import NONE
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_http_methods

from dataplane.spec import SpecError
from mgmt import services
from mgmt.deliveries.attempt_views import attempt_views
from mgmt.deliveries.queries.attempts import AttemptFilter
from mgmt.deliveries.queries.breakers import breaker_of
from mgmt.deliveries.queries.delivery import dead_letters
from mgmt.deliveries.queries.health import is_unhealthy
from mgmt.deliveries.queries.message_selection import MessageSelection
from mgmt.deliveries.undelivered_views import problems_of
from mgmt.ids import storable
from mgmt.models import Destination, OffsetSet, Pipe, PortalLink, User
from mgmt.portal.presenters import state_line, undelivered_line
from mgmt.portal.queries import acting_user, portal_link_of_token
from mgmt.sandbox import SandboxRefused
from mgmt.tenancy.row_scope import restrict_to
from mgmt.tenancy.services.rate_limits import TryLimit, hit, network_of
from mgmt.web import access
from mgmt.web.rendering import THEMES, unlisted

MOST_ATTEMPTS: Final = 25
VIEWS: Final = TryLimit("portal: address", 240, timedelta(minutes=5))
# By destination, not by link: each visit of the embedding page may have a new link.
CHANGES: Final = TryLimit("portal: changes of a destination", 30, timedelta(minutes=5))
URLS: Final = TryLimit("portal: URLs of a destination", 10, timedelta(hours=1))  # each is a revision of the pipe
SECRETS: Final = TryLimit("portal: secrets of a destination", 1, timedelta(minutes=10))  # one more ends the previous
# Texts after a change, by the code in the address: a text of the address itself could be anything.
DONE: Final[Mapping[str, str]] = {
    "redrive": "The events are sent again. Refresh to see the result.",
    "url": "The new URL is saved. It is used in about a minute.",
    "pause": "The endpoint is paused. New events are kept.",
    "resume": "The endpoint is active again. Kept events are delivered in order.",
}
REFUSALS: Final[Mapping[str, tuple[int, str, str]]] = {
    "unknown": (404, "This link is not valid", "Reload the page of your provider to get a new link."),
    "expired": (410, "This link has expired", "Reload the page of your provider to get a new link."),
    "revoked": (410, "This link was revoked", "Reload the page of your provider. If this appears again, contact them."),
    "busy": (429, "Too many requests", "Wait a minute, then reload the page of your provider."),
    "other-site": (403, "This request came from another site", "Use the buttons of this page."),
}
_CANNOT: Final = "Your link does not permit this. Ask your provider."


class Visit(NamedTuple):
    """A request with an open link: `user` acts for it, with the permissions of the link only."""

    link: PortalLink
    user: User
    pipe: Pipe
    destination: Destination
    address: str


class PortalRefused(Exception):  # noqa: N818 named for what the caller answers
    """The request is refused. `code`: one of REFUSALS; `link`: its link, None for an unknown one."""

    def __init__(self, code: str, link: PortalLink | None = None) -> None:
        super().__init__(code)
        self.code = code
        self.link = link


class TooOftenError(Exception):
    """The action was repeated too often; the text says when it is possible again."""


@csrf_exempt  # no cookie authenticates, so no other site can use one
@require_http_methods(["GET", "HEAD", "POST"])
@sensitive_variables("token")
def portal(request: HttpRequest, token: str) -> HttpResponse:
    """Show an endpoint to the customer of a tenant; a POST redrives, pauses, resumes, or changes URL or secret."""
    try:
        visit = _opened(request, token)
        if request.method == "POST":
            return _change(request, visit)
        return _page(request, visit, done=DONE.get(request.GET.get("done", ""), ""))
    except PortalRefused as exc:
        status, title, todo = REFUSALS[exc.code]
        context = {"title": title, "todo": todo, "link": exc.link}
        return _framed(_render(request, "portal/refused.html", context, status), exc.link)


def _opened(request: HttpRequest, token: str) -> Visit:
    """Return the visit of an open link. Raises PortalRefused."""
    now = timezone.now()
    if hit(VIEWS, network_of(request.META.get("REMOTE_ADDR", "")), now):
        raise PortalRefused("busy")
    link = portal_link_of_token(token)
    if link is None:
        raise PortalRefused("unknown")
    restrict_to([link.destination.pipe.tenant_id])
    user = acting_user(link)
    if user is None or not link.is_open_at(now):
        raise PortalRefused("expired" if user and link.revoked_at is None else "revoked", link)
    if request.method == "POST":
        if request.headers.get("Sec-Fetch-Site", "same-origin") != "same-origin":
            raise PortalRefused("other-site", link)
        if hit(CHANGES, str(link.destination_id), now):
            raise PortalRefused("busy", link)
    pipe = access.get_pipe(user, link.destination.pipe_id)
    destination = access.get_destination(user, pipe.id, link.destination.name)
    return Visit(link, user, pipe, destination, _address(request))


@sensitive_variables("secret")
def _change(request: HttpRequest, visit: Visit) -> HttpResponse:
    """Carry out the action of a form if the link permits it, and show the page with the outcome."""
    action = request.POST.get("action", "")
    act = _ACTIONS.get(action)
    if act is None or not (visit.link.may_redrive if action == "redrive" else visit.link.may_edit):
        return _page(request, visit, error=_CANNOT, status=403)
    try:
        secret = act(visit, request.POST)
    except TooOftenError as exc:
        return _page(request, visit, error=str(exc), status=429)
    except (services.ServiceError, SpecError, SandboxRefused) as exc:
        status, words = _in_words(exc, visit.destination.name)
        url = request.POST.get("url", "").strip() if action == "url" else ""
        return _page(request, visit, error=words, url=url, status=status)
    if secret:
        return _page(request, visit, secret=secret)
    joined = "&" if "?" in visit.address else "?"
    return _framed(HttpResponseRedirect(f"{visit.address}{joined}{urlencode({'done': action})}"), visit.link)


def _in_words(exc: Exception, name: str) -> tuple[int, str]:
    """Return the status and the text of a refused change. Texts of services address members of the tenant.

    Faults elsewhere in the spec are not shown: they contain facts about the tenant and its other destinations.
    """
    match exc:
        case SpecError(path=path, reason=reason) if path == f"$.destinations.{name}.url":
            return 422, f"The URL {reason}."
        case services.CredentialNeededError():
            return 409, "Requests to you carry a password or token, which a new address needs again. Ask your provider."
        case services.UnchangedError():
            return 409, "This is the current URL."
        case services.RevisionConflictError() | services.PipeClosedError() | SpecError():
            return 409, "Your provider is changing this endpoint. Try again in a few minutes."
        case SandboxRefused():
            return 503, "This is not possible right now. Try again in a minute."
    return 409, "Nothing was changed: the state is different by now. The page shows the current one."


def _redrive(visit: Visit, form: Mapping[str, str]) -> str:
    chosen = MessageSelection(visit.destination.name, OffsetSet.Kind.DEAD, cause=storable(form.get("cause", ""))[:40])
    access.get_pipe(visit.user, visit.pipe.id, access.MOVE_MESSAGES)
    services.start_redrive(pipe=visit.pipe, chosen=chosen, by=visit.user)
    return ""


def _pause(visit: Visit, _form: Mapping[str, str]) -> str:
    services.pause_destination(destination=_to(visit, access.PAUSE), by=visit.user)
    return ""


def _resume(visit: Visit, _form: Mapping[str, str]) -> str:
    services.resume_destination(destination=_to(visit, access.PAUSE), by=visit.user)
    return ""


def _set_url(visit: Visit, form: Mapping[str, str]) -> str:
    destination = _to(visit, access.PUBLISH_REVISION)
    _count(URLS, destination, "The URL was changed very often. Try again in an hour.")
    services.change_endpoint_url(destination=destination, url=form.get("url", "").strip(), by=visit.user)
    return ""


def _rotate(visit: Visit, _form: Mapping[str, str]) -> str:
    destination = _to(visit, access.ROTATE_SECRET)
    _count(
        SECRETS, destination, "There is a new secret already. One more would end the previous one: wait ten minutes."
    )
    return services.rotate_signing_secret(destination=destination, by=visit.user)[1]


def _count(limit: TryLimit, destination: Destination, refusal: str) -> None:
    """Count an action. Raises TooOftenError."""
    if hit(limit, str(destination.id), timezone.now()):
        raise TooOftenError(refusal)


_ACTIONS: Final[Mapping[str, Callable[[Visit, Mapping[str, str]], str]]] = {
    "redrive": _redrive,
    "pause": _pause,
    "resume": _resume,
    "url": _set_url,
    "secret": _rotate,
}


def _to(visit: Visit, need: str) -> Destination:
    """Return the link's destination if its user has the role that an action needs. Raises DestinationRemovedError."""
    found = access.get_destination(visit.user, visit.pipe.id, visit.destination.name, need)
    if found.state == Destination.State.REMOVED:
        raise services.DestinationRemovedError(f"{found.name} was removed.")
    return found


def _address(request: HttpRequest) -> str:
    """Return the path of the portal, with the theme that the embedding page chose."""
    theme = request.GET.get("theme", "")
    return f"{request.path}?{urlencode({'theme': theme})}" if theme in THEMES else request.path


def _page(
    request: HttpRequest,
    visit: Visit,
    *,
    status: int = 200,
    done: str = "",
    error: str = "",
    secret: str = "",
    url: str = "",
) -> HttpResponse:
    now, row = timezone.now(), visit.destination
    row.refresh_from_db()
    found = [one for one in problems_of([visit.pipe], now) if one.where == row.name]
    problems = [undelivered_line(one, _newest_answer(visit, one.cause)) for one in found]
    breaker = breaker_of(pipe_id=visit.pipe.id, destination=row.name, now=now)
    state = state_line(
        row,
        is_stopped=visit.pipe.state == Pipe.State.PAUSED,
        is_failing=breaker.state in ("open", "half-open") or is_unhealthy(row),
        problems=problems,
    )
    context = {
        "link": visit.link,
        "destination": row,
        "state": state,
        "problems": problems,
        "attempts": attempt_views(visit.pipe.id, MOST_ATTEMPTS, AttemptFilter(destination=row.name)),
        "address": visit.address,
        "done": done,
        "error": error,
        "secret": secret,
        "url": url or row.config.get("url", ""),
        "now": now,
    }
    return _framed(_render(request, "portal/portal.html", context, status), visit.link)


def _newest_answer(visit: Visit, cause: str) -> str:
    """Return the endpoint's newest response to an event that failed with this cause; "" if there is none."""
    rows = dead_letters(pipe=visit.pipe, destination=visit.destination.name, cause=cause) if cause else None
    newest = rows.first() if rows is not None else None
    return newest.answer if newest else ""


def _render(request: HttpRequest, template: str, context: dict[str, Any], status: int) -> HttpResponse:
    theme = request.GET.get("theme", "")
    return render(request, template, context | {"theme": theme if theme in THEMES else ""}, status=status)


def _framed(response: HttpResponse, link: PortalLink | None) -> HttpResponse:
    """Permit the sites of the link's tenant, and no other, to show the response in a frame."""
    response["Referrer-Policy"] = "no-referrer"  # the address is the credential
    if link is not None:
        origins = link.destination.pipe.tenant.portal_origins
        response._csp_replace = {"frame-ancestors": origins or [NONE]}  # type: ignore[attr-defined]  # read by django-csp
        response.xframe_options_exempt = bool(origins)  # it cannot name origins
    return unlisted(response)
