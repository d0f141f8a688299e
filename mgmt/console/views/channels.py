"""Where a tenant's alerts are told: mail addresses and signed webhooks."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_http_methods

from dataplane.spec import SpecError
from mgmt import access, services
from mgmt.console.pages import as_curl, for_members, show, tenant_of, viewer_of
from mgmt.models import AlertChannel, Tenant

KINDS = [(AlertChannel.Kind.MAIL, "by mail"), (AlertChannel.Kind.WEBHOOK, "by webhook")]


@for_members
@require_http_methods(["GET", "POST"])
def channels(request: HttpRequest) -> HttpResponse:
    """The list; a POST adds one, or removes the one named in `remove`."""
    chosen = tenant_of(request)
    if chosen is None:
        raise Tenant.DoesNotExist
    if request.method != "POST":
        return _page(request, chosen)
    tenant = access.get_tenant(viewer_of(request), chosen.id, access.CHANGE_CHANNELS)
    return _remove(request, tenant) if "remove" in request.POST else _add(request, tenant)


@sensitive_variables("secret")
def _add(request: HttpRequest, tenant: Tenant) -> HttpResponse:
    kind, target = request.POST.get("kind", ""), request.POST.get("target", "")
    kind = kind if kind in AlertChannel.Kind.values else AlertChannel.Kind.MAIL
    try:
        channel, secret = services.add_alert_channel(tenant=tenant, kind=kind, target=target)
    except services.InvalidValue as exc:
        return _page(request, tenant, error=exc.reason, typed=target, kind=kind)
    except (services.Refused, SpecError) as exc:
        return _page(request, tenant, error=str(exc), typed=target, kind=kind)
    if secret:  # shown in this answer alone: it must not wait in a session
        return _page(request, tenant, shown=(channel.target, secret))
    messages.success(request, f"Alerts are told to {channel.target}.", "fine")
    return redirect("console:channels")


def _remove(request: HttpRequest, tenant: Tenant) -> HttpResponse:
    channel = access.get_channel(viewer_of(request), tenant.id, request.POST.get("remove", ""), access.CHANGE_CHANNELS)
    services.remove_alert_channel(channel=channel)
    messages.success(request, f"Alerts are no longer told to {channel.target}.", "fine")
    return redirect("console:channels")


def _page(
    request: HttpRequest,
    tenant: Tenant,
    *,
    error: str = "",
    typed: str = "",
    kind: str = "",
    shown: tuple[str, str] | None = None,
) -> HttpResponse:
    context = {
        "channels": tenant.alert_channels.order_by("created_at"),
        "kinds": KINDS,
        "error": error,
        "typed": typed,
        "kind": kind,
        "shown": shown,
        "curl": as_curl(request, f"tenants/{tenant.id}/alert-channels/"),
    }
    return show(request, "channels.html", context, tenant=tenant, status=422 if error else 200)
