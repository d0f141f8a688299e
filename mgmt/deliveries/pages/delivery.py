"""Delivery settings of one destination: a form for its part of the spec. Saving publishes a revision."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods

from dataplane.spec import SpecError, parse_pipe_spec, spec_to_builtins
from mgmt import services
from mgmt.deliveries.credential_form import AskedCredential, asked_credentials, posted_credentials
from mgmt.deliveries.queries.health import is_unhealthy
from mgmt.deliveries.settings_form import (
    THENS,
    TIMEOUT_RULES,
    DeliverySettings,
    HeaderRow,
    ResponseRuleRow,
    settings_from_post,
    settings_from_spec,
)
from mgmt.models import Destination, Pipe
from mgmt.pipes.page_context import pipe_context
from mgmt.sandbox import SandboxRefused
from mgmt.web import access
from mgmt.web.rendering import as_curl, for_members, number_of, show, viewer_of

_PARTS: Final = {"add-rule": "rules", "add-timeouts": "rules", "add-header": "headers"}


@for_members
@require_http_methods(["GET", "POST"])
def delivery(request: HttpRequest, pipe_id: str, name: str) -> HttpResponse:
    """Show and publish retries, limits, ordering, batching and authentication of one destination."""
    destination = access.get_destination(viewer_of(request), pipe_id, name, access.PUBLISH_REVISION)
    pipe = access.get_pipe(viewer_of(request), pipe_id)
    newest = pipe.revisions.latest("number")
    spec = spec_to_builtins(parse_pipe_spec(newest.spec))  # an older spec lacks fields that were added since
    if spec["destinations"].get(name, {}).get("type") != "http":
        raise Destination.DoesNotExist
    if request.method != "POST":
        settings = settings_from_spec(spec["destinations"][name])
        return _page(request, pipe, destination, settings, based_on=newest.number, spec=spec)
    settings, based_on = settings_from_post(request.POST), number_of(request.POST.get("based_on"))
    action = request.POST.get("action", "save")
    if action == "save":
        return _save(request, pipe, destination, settings, based_on=based_on, spec=spec)
    part = _part(action) if "HX-Request" in request.headers else ""
    edited = _edited(settings, action).unbound()
    return _page(request, pipe, destination, edited, based_on=based_on, spec=spec, part=part)


def _save(
    request: HttpRequest,
    pipe: Pipe,
    destination: Destination,
    settings: DeliverySettings,
    *,
    based_on: int,
    spec: Mapping[str, Any],
) -> HttpResponse:
    answer = partial(_page, request, pipe, destination, spec=spec, based_on=based_on)
    if not settings.form.is_valid():
        return answer(settings, status=422)
    changed = settings.destination(spec["destinations"][destination.name])
    document = {**spec, "destinations": {**spec["destinations"], destination.name: changed}}
    try:
        services.publish_revision(
            pipe=pipe,
            spec=document,
            based_on=based_on,
            author=viewer_of(request),
            credentials=posted_credentials(request.POST),
            at_once=True if is_unhealthy(destination) else None,
        )
    except services.CredentialNeededError as exc:
        return answer(settings, asked=asked_credentials(exc.needed), status=422)
    except (services.InvalidValue, SandboxRefused) as exc:
        settings.form.add_error(None, exc.reason if isinstance(exc, services.InvalidValue) else str(exc))
        return answer(settings, status=422)
    except SpecError as exc:
        return answer(settings.with_error(exc.path, exc.reason), status=422)
    except (services.RevisionConflictError, services.PipeClosedError) as exc:
        newest = pipe.revisions.latest("number").number
        return answer(settings, based_on=newest, conflict=str(exc), status=409)
    messages.success(request, f"Revision {based_on + 1} published with the new settings of {destination.name}.", "fine")
    return redirect("console:destination", pipe.id, destination.name)


def _page(
    request: HttpRequest,
    pipe: Pipe,
    destination: Destination,
    settings: DeliverySettings,
    *,
    based_on: int,
    spec: Mapping[str, Any],
    part: str = "",
    status: int = 200,
    conflict: str = "",
    asked: Sequence[AskedCredential] = (),
) -> HttpResponse:
    context = pipe_context(pipe, "settings") | {
        "asked_credentials": asked,
        "destination": destination,
        "is_unhealthy": is_unhealthy(destination),
        "settings": settings,
        "thens": list(THENS.items()),
        "based_on": based_on,
        "conflict": conflict,
        "curl": as_curl(f"pipes/{pipe.id}/revisions/", {"based_on": based_on, "spec": dict(spec)}),
    }
    return show(request, "deliveries/settings.html", context, tenant=pipe.tenant, part=part, status=status)


def _edited(settings: DeliverySettings, action: str) -> DeliverySettings:
    """Return the settings with a row added or removed."""
    if action == "add-rule":
        return replace(settings, rules=(*settings.rules, ResponseRuleRow()))
    if action == "add-timeouts":
        known = {row.status.strip() for row in settings.rules}
        extra = tuple(ResponseRuleRow(*row) for row in TIMEOUT_RULES if row[0] not in known)
        return replace(settings, rules=(*settings.rules, *extra))
    if action == "add-header":
        return replace(settings, headers=(*settings.headers, HeaderRow()))
    kind, _, place = action.rpartition("-")
    gone = number_of(place)
    if kind == "drop-rule":
        return replace(settings, rules=tuple(row for n, row in enumerate(settings.rules) if n != gone))
    return replace(settings, headers=tuple(row for n, row in enumerate(settings.headers) if n != gone))


def _part(action: str) -> str:
    return _PARTS.get(action) or ("rules" if action.startswith("drop-rule") else "headers")
