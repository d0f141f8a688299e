"""Webhook settings of a source: the sender, its secret, the headers to keep, and the URL."""

from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables
from django.views.decorators.http import require_http_methods

from dataplane.webhooks import PRESETS
from mgmt import services
from mgmt.ledger.queries.bucket_range import span_until
from mgmt.models import Source
from mgmt.pipes.page_context import pipe_context
from mgmt.web import access
from mgmt.web.rendering import for_members, ingest_url, once, show, viewer_of
from mgmt.webhook_sources.queries import GUIDES, place_words, preset_of, refused_deliveries, url_of, urls_of, webhook_of


@dataclass(frozen=True)
class WebhookForm:
    """Fields of the form, as the user typed them, without the secret."""

    preset: str = "github"
    headers: str = ""
    keep_previous: bool = True


@for_members
@require_http_methods(["GET", "HEAD", "POST"])
@sensitive_post_parameters("secret")
@sensitive_variables("secret")
def webhook(request: HttpRequest, pipe_id: str, name: str) -> HttpResponse:
    """Show the webhook settings of a source; a POST sets them, or creates a URL and shows it once."""
    if request.method != "POST":
        return _page(request, access.get_source(viewer_of(request), pipe_id, name))
    if request.POST.get("action") == "url":
        return _new_url(request, access.get_source(viewer_of(request), pipe_id, name, access.MAKE_KEY))
    source = access.get_source(viewer_of(request), pipe_id, name, access.SET_WEBHOOK)
    form = WebhookForm(
        request.POST.get("preset", ""), request.POST.get("headers", ""), request.POST.get("keep_previous") == "yes"
    )
    try:
        services.set_webhook(
            source=source,
            preset=form.preset,
            secret=request.POST.get("secret", "").strip(),
            headers=form.headers.split(),
            keep_previous=form.keep_previous,
            by=viewer_of(request),
        )
    except services.InvalidValue as exc:
        return _page(request, source, form, (exc.field, exc.reason), status=422)
    except services.ServiceError as exc:
        return _page(request, source, form, ("", str(exc)), status=409)
    messages.success(request, "Sender saved. Ingest applies it within seconds.", "fine")
    return redirect("console:webhook", source.pipe_id, source.name)


@sensitive_variables("secret", "url")
def _new_url(request: HttpRequest, source: Source) -> HttpResponse:
    try:
        _, secret = services.create_api_key(source=source, use="url", by=viewer_of(request))
    except (services.InvalidValue, services.ServiceError) as exc:
        return _page(request, source, error=("", str(exc)), status=409)
    return _page(request, source, url=url_of(ingest_url(), secret))


def _page(
    request: HttpRequest,
    source: Source,
    form: WebhookForm | None = None,
    error: tuple[str, str] = ("", ""),
    *,
    url: str = "",
    status: int = 200,
) -> HttpResponse:
    row = webhook_of(source)
    if form is None:
        form = WebhookForm(row.preset, " ".join(row.headers)) if row else WebhookForm()
    preset = preset_of(row) if row else None
    now = timezone.now()
    span = span_until("24h", now)
    context: dict[str, Any] = pipe_context(source.pipe, "settings") | {
        "source": source,
        "row": row,
        "preset": preset,
        "guide": GUIDES[row.preset] if row else None,
        "id_from": place_words(preset.id) if preset else "",
        "type_from": place_words(preset.type) if preset else "",
        "choices": [(one.name, one.title) for one in PRESETS.values()],
        "guides": [(PRESETS[name].title, guide) for name, guide in GUIDES.items()],
        "form": form,
        "error_at": error[0],
        "error": error[1],
        "url": url,
        "urls": urls_of(source, ingest_url(), now) if row else [],
        "is_unverifiable": row is not None and not preset_of(row).can_verify(row.secrets),
        "get_refused": once(lambda: refused_deliveries(source, span)),
        "span": span,
        "now": now,
    }
    return show(request, "webhook_sources/webhook.html", context, tenant=source.pipe.tenant, status=status)
