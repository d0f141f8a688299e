"""Notification channels of a tenant's alerts: e-mail addresses, their confirmation, webhooks, chats and pagers."""

from datetime import timedelta
from math import ceil
from typing import Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables
from django.views.decorators.http import require_http_methods

from dataplane.spec import SpecError
from mgmt import services
from mgmt.models import AlertChannel, Tenant
from mgmt.tenancy.row_scope import add_tenant
from mgmt.tenancy.services.rate_limits import CountedTry, TryLimit, hit, network_of
from mgmt.tenancy.services.rate_limits import wait_s as wait_for
from mgmt.web import access
from mgmt.web.rendering import as_curl, for_members, selected_tenant, show, theme_of, viewer_of

LATE: Final = timedelta(minutes=2)  # a test is sent within seconds
CONFIRMATION_LINKS: Final = TryLimit("confirmation link: address", 30, timedelta(minutes=5))


@for_members
@sensitive_post_parameters("target")
@require_http_methods(["GET", "POST"])
def channels(request: HttpRequest) -> HttpResponse:
    """List channels; a POST adds one, removes or tests the one it names, or resends its confirmation."""
    chosen = selected_tenant(request)
    if request.method != "POST":
        return _page(request, chosen, part="list" if request.GET.get("part") == "list" else "")
    tenant = access.get_tenant(viewer_of(request), chosen.id, access.CHANGE_CHANNELS)
    if "remove" in request.POST:
        return _remove(request, tenant)
    if "test" in request.POST:
        return _test(request, tenant)
    return _resend(request, tenant) if "resend" in request.POST else _add(request, tenant)


@never_cache
@require_http_methods(["GET", "POST"])
def confirm(request: HttpRequest, token: str) -> HttpResponse:
    """Serve a confirmation link; no sign-in is needed.

    Only the POST confirms, because mail scanners open links. Invalid links count against the client's network.
    """
    now, address = timezone.now(), network_of(request.META.get("REMOTE_ADDR", ""))
    wait_s = wait_for([CountedTry(CONFIRMATION_LINKS, address)], now)
    channel = None if wait_s else services.channel_of_token(token=token)
    if channel is None and not wait_s:
        hit(CONFIRMATION_LINKS, address, now)
    if channel is not None:
        add_tenant(channel.tenant_id)
    if channel is not None and request.method == "POST":
        services.confirm_channel(channel=channel, now=now)
        channel.refresh_from_db()
    context = {"channel": channel, "wait_minutes": ceil(wait_s / 60), "theme": theme_of(request)}
    status = 429 if wait_s else 200 if channel else 404
    response = render(request, "alerts/confirm_channel.html", context, status=status)
    response["X-Robots-Tag"] = "noindex"
    if wait_s:
        response["Retry-After"] = str(wait_s)
    return response


@sensitive_variables("secret", "target")
def _add(request: HttpRequest, tenant: Tenant) -> HttpResponse:
    kind, target = request.POST.get("kind", ""), request.POST.get("target", "")
    kind = kind if kind in AlertChannel.Kind.values else AlertChannel.Kind.MAIL
    try:
        channel, secret = services.add_alert_channel(
            tenant=tenant, kind=kind, target=target, now=timezone.now(), by=viewer_of(request)
        )
    except services.InvalidValue as exc:
        return _page(request, tenant, error=exc.reason, typed=target, kind=kind)
    except (services.ServiceError, SpecError) as exc:
        return _page(request, tenant, error=str(exc), typed=target, kind=kind)
    if secret:  # rendered in this response only: it must not be stored in a session
        return _page(request, tenant, shown=(channel.target, secret))
    if channel.is_active:
        messages.success(request, f"Channel added. Alerts are sent to {channel.target}.", "fine")
    else:
        messages.success(request, f"We sent a confirmation e-mail to {channel.target}.", "fine")
    return redirect("console:channels")


def _resend(request: HttpRequest, tenant: Tenant) -> HttpResponse:
    channel = access.get_channel(viewer_of(request), tenant.id, request.POST.get("resend", ""), access.CHANGE_CHANNELS)
    try:
        services.ask_for_confirmation(channel=channel, now=timezone.now(), by=viewer_of(request))
    except services.TooManyConfirmationsError as exc:
        return _page(request, tenant, not_sent=str(exc), status=429)
    messages.success(request, f"We sent a confirmation e-mail to {channel.target}.", "fine")
    return redirect("console:channels")


def _test(request: HttpRequest, tenant: Tenant) -> HttpResponse:
    channel = access.get_channel(viewer_of(request), tenant.id, request.POST.get("test", ""), access.CHANGE_CHANNELS)
    try:
        services.request_channel_test(channel=channel, now=timezone.now(), by=viewer_of(request))
    except services.TooManyTestsError as exc:
        return _page(request, tenant, not_sent=str(exc), status=429)
    except services.ChannelNotConfirmedError as exc:
        return _page(request, tenant, not_sent=str(exc), status=409)
    return redirect("console:channels")


def _remove(request: HttpRequest, tenant: Tenant) -> HttpResponse:
    channel = access.get_channel(viewer_of(request), tenant.id, request.POST.get("remove", ""), access.CHANGE_CHANNELS)
    services.remove_alert_channel(channel=channel, by=viewer_of(request))
    messages.success(request, f"Alerts are no longer sent to {channel.target}.", "fine")
    return redirect("console:channels")


def _page(
    request: HttpRequest,
    tenant: Tenant,
    *,
    error: str = "",
    typed: str = "",
    kind: str = "",
    shown: tuple[str, str] | None = None,
    not_sent: str = "",
    part: str = "",
    status: int = 200,
) -> HttpResponse:
    rows = list(tenant.alert_channels.order_by("created_at"))
    context = {
        "channels": rows,
        "is_testing": any(row.test_due_at for row in rows),
        "late": {row.id for row in rows if row.test_requested_at and row.test_requested_at < timezone.now() - LATE},
        "kinds": AlertChannel.Kind.choices,
        "error": error,
        "typed": typed,
        "kind": kind,
        "shown": shown,
        "not_sent": not_sent,
        "curl": as_curl(f"tenants/{tenant.id}/alert-channels/"),
    }
    return show(request, "alerts/channels.html", context, tenant=tenant, part=part, status=422 if error else status)
