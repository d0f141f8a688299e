"""Settings of a pipe: sources with API keys, destinations with signing secrets."""

from datetime import timedelta
from functools import partial
from typing import Any, Final

from django.contrib import messages
from django.db.models import Max, Prefetch
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_POST, require_safe

from mgmt import services
from mgmt.ledger.presenters import skew_view
from mgmt.models import ApiKey, Pipe
from mgmt.pipes.page_context import pipe_context
from mgmt.pipes.pages.edit import NewKeyView
from mgmt.pipes.services.keys import MAX_OVERLAP_HOURS, OVERLAP_HOURS
from mgmt.web import access
from mgmt.web.rendering import as_curl, for_members, ingest_url, number_of, once, show, viewer_of
from mgmt.web.snippets import endpoint, send_snippets
from mgmt.webhook_sources.queries import url_of

OVERLAPS: Final = {
    0: "at once",
    1: "in 1 hour",
    OVERLAP_HOURS: "in 1 day",
    168: "in 7 days",
    MAX_OVERLAP_HOURS: "in 30 days",
}


@for_members
@require_safe
def settings(request: HttpRequest, pipe_id: str) -> HttpResponse:
    """Show the endpoint, sources with keys, and destinations."""
    return _page(request, access.get_pipe(viewer_of(request), pipe_id))


@for_members
@require_POST
@sensitive_variables("secret")
def create_key(request: HttpRequest, pipe_id: str) -> HttpResponse:
    """Create an API key and render the page that shows it once."""
    source = access.get_source(viewer_of(request), pipe_id, request.POST.get("source", ""), access.MAKE_KEY)
    pipe = access.get_pipe(viewer_of(request), pipe_id)
    try:
        _, secret = services.create_api_key(source=source, label=request.POST.get("label", ""), by=viewer_of(request))
    except (services.InvalidValue, services.PipeClosedError, services.QuotaExceededError) as exc:
        messages.error(request, str(exc), extra_tags="bad")
        return redirect("console:settings", pipe_id)
    return _page(request, pipe, key=NewKeyView(source.name, secret))


@for_members
@require_POST
@sensitive_variables("secret")
def rotate_key(request: HttpRequest, pipe_id: str, key_id: str) -> HttpResponse:
    """Create a successor of a key and render the page that shows it once; the old key works for some `hours`."""
    key = access.get_key(viewer_of(request), pipe_id, key_id, access.MAKE_KEY)
    overlap = timedelta(hours=min(number_of(request.POST.get("hours")), MAX_OVERLAP_HOURS))
    try:
        _, secret = services.rotate_api_key(key=key, by=viewer_of(request), overlap=overlap, now=timezone.now())
    except services.ServiceError as exc:
        messages.error(request, str(exc), extra_tags="bad")
        return redirect("console:settings", pipe_id)
    pipe = access.get_pipe(viewer_of(request), pipe_id)
    if key.use == "url":
        secret = url_of(ingest_url(), secret)
    return _page(request, pipe, key=NewKeyView(key.source.name, secret, key.use))


@for_members
@require_POST
def set_loss_threshold(request: HttpRequest, pipe_id: str) -> HttpResponse:
    """Set the loss of a minute above which the tenant is alerted."""
    pipe = access.get_pipe(viewer_of(request), pipe_id, access.RENAME_PIPE)
    typed = request.POST.get("percent", "").strip().replace(",", ".")
    try:
        services.set_loss_threshold(pipe=pipe, percent=float(typed or "nan"), by=viewer_of(request))
    except (ValueError, services.InvalidValue):
        messages.error(request, "Enter a number from 0 to less than 100.", extra_tags="bad")
    else:
        words = "any message is lost" if not pipe.loss_threshold_percent else f"a minute loses more than {typed} %"
        messages.success(request, f"You are alerted if {words}.", extra_tags="fine")
    return redirect("console:settings", pipe_id)


@for_members
@require_POST
def revoke_key(request: HttpRequest, pipe_id: str, key_id: str) -> HttpResponse:
    """Revoke an API key permanently."""
    key = access.get_key(viewer_of(request), pipe_id, key_id, access.REVOKE_KEY)
    services.revoke_api_key(key=key, by=viewer_of(request))
    messages.success(request, f"Key {key.prefix}… revoked. Senders that use it get 401.", extra_tags="fine")
    return redirect("console:settings", pipe_id)


@for_members
@require_POST
@sensitive_variables("secret")
def rotate_secret(request: HttpRequest, pipe_id: str, name: str) -> HttpResponse:
    """Create a new signing secret, keep the previous one valid, and render the page that shows the new one once."""
    destination = access.get_destination(viewer_of(request), pipe_id, name, access.ROTATE_SECRET)
    _, secret = services.rotate_signing_secret(destination=destination, by=viewer_of(request))
    return _page(request, access.get_pipe(viewer_of(request), pipe_id), signing=[(name, secret)])


def _page(
    request: HttpRequest, pipe: Pipe, *, key: NewKeyView | None = None, signing: list[tuple[str, str]] | None = None
) -> HttpResponse:
    keys = Prefetch("keys", ApiKey.objects.order_by("-created_at"), to_attr="all_keys")
    api_key = key.secret if key and key.use == "key" else ""
    context: dict[str, Any] = pipe_context(pipe, "settings") | {
        "endpoint": endpoint(ingest_url()),
        "snippets": send_snippets(ingest_url=ingest_url(), key=api_key, sample=pipe.sample),
        "sources": pipe.sources.annotate(schema=Max("schemas__number")).order_by("name").prefetch_related(keys),
        "destinations": pipe.destinations.order_by("name"),
        "keys": [key] if key else [],
        "now": timezone.now(),
        "overlaps": OVERLAPS,
        "overlap": OVERLAP_HOURS,
        "signing": signing or [],
        "rotated": bool(signing),
        "get_skew": once(partial(skew_view, pipe, timezone.now())),
        "curl": as_curl(f"pipes/{pipe.id}/sources/"),
    }
    return show(request, "pipes/settings.html", context, tenant=pipe.tenant)
