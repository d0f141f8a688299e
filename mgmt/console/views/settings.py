"""Sources with their keys, and destinations with their signing secrets."""

from functools import partial
from typing import Any

from django.contrib import messages
from django.db.models import Max, Prefetch
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_POST, require_safe

from mgmt import access, services
from mgmt.console.pages import as_curl, for_members, ingest_url, once, show, viewer_of
from mgmt.console.skew import skew_of
from mgmt.console.snippets import endpoint, send_snippets
from mgmt.console.views.edit import ShownKey
from mgmt.console.views.pipe import shared
from mgmt.models import ApiKey, Pipe


@for_members
@require_safe
def settings(request: HttpRequest, pipe_id: str) -> HttpResponse:
    """The endpoint, sources with keys, destinations."""
    return _page(request, access.get_pipe(viewer_of(request), pipe_id))


@for_members
@require_POST
@sensitive_variables("secret")
def create_key(request: HttpRequest, pipe_id: str) -> HttpResponse:
    """Makes a key and answers with the page that shows it, once."""
    source = access.get_source(viewer_of(request), pipe_id, request.POST.get("source", ""), access.MAKE_KEY)
    pipe = access.get_pipe(viewer_of(request), pipe_id)
    try:
        _, secret = services.create_api_key(source=source, label=request.POST.get("label", ""))
    except (services.InvalidValue, services.PipeClosed, services.QuotaExceeded) as exc:
        messages.error(request, str(exc), extra_tags="bad")
        return redirect("console:settings", pipe_id)
    return _page(request, pipe, key=ShownKey(source.name, secret))


@for_members
@require_POST
def revoke_key(request: HttpRequest, pipe_id: str, key_id: str) -> HttpResponse:
    """Ends a key for good."""
    key = access.get_key(viewer_of(request), pipe_id, key_id, access.REVOKE_KEY)
    services.revoke_api_key(key=key)
    messages.success(request, f"The key {key.prefix}… is revoked: senders that use it get 401.", extra_tags="fine")
    return redirect("console:settings", pipe_id)


@for_members
@require_POST
@sensitive_variables("secret")
def rotate_secret(request: HttpRequest, pipe_id: str, name: str) -> HttpResponse:
    """Makes a new signing secret beside the old one and answers with the page that shows it, once."""
    destination = access.get_destination(viewer_of(request), pipe_id, name, access.ROTATE_SECRET)
    _, secret = services.rotate_signing_secret(destination=destination)
    return _page(request, access.get_pipe(viewer_of(request), pipe_id), signing=[(name, secret)])


def _page(
    request: HttpRequest, pipe: Pipe, *, key: ShownKey | None = None, signing: list[tuple[str, str]] | None = None
) -> HttpResponse:
    keys = Prefetch("keys", ApiKey.objects.order_by("-created_at"), to_attr="all_keys")
    context: dict[str, Any] = shared(pipe, "settings") | {
        "endpoint": endpoint(ingest_url()),
        "snippets": send_snippets(ingest_url=ingest_url(), key=key.secret if key else ""),
        "sources": pipe.sources.annotate(schema=Max("schemas__number")).order_by("name").prefetch_related(keys),
        "destinations": pipe.destinations.order_by("name"),
        "keys": [key] if key else [],
        "signing": signing or [],
        "rotated": bool(signing),
        "get_skew": once(partial(skew_of, pipe, timezone.now())),
        "curl": as_curl(request, f"pipes/{pipe.id}/sources/"),
    }
    return show(request, "settings.html", context, tenant=pipe.tenant)
