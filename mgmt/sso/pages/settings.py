"""Page of a tenant's single sign-on, for its owners: provider, domains, requirement."""

from collections.abc import Callable
from typing import Any, Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from mgmt import services
from mgmt.models import Membership, SsoConnection, SsoDomain, Tenant
from mgmt.sso.domain_records import record_name
from mgmt.sso.queries import connection_of, domains_of
from mgmt.sso.saml.metadata import facts_of_certificate
from mgmt.sso.saml.response import PERSISTENT
from mgmt.sso.services.connections import acs_url_of, entity_id_of, redirect_uri_of, sign_in_url_of
from mgmt.web import access
from mgmt.web.rendering import act_and_report, as_curl, for_members, selected_tenant, show, viewer_of

_Action = Callable[[HttpRequest, Tenant], HttpResponse]
_PATH: Final = "console:single_sign_on"


@for_members
@require_http_methods(["GET", "POST"])
def single_sign_on(request: HttpRequest) -> HttpResponse:
    """Show the settings; a POST runs the one of _ACTIONS that it names, or else saves them."""
    tenant = access.get_tenant(viewer_of(request), selected_tenant(request).id, access.MANAGE_SSO)
    if request.method != "POST":
        return _page(request, tenant)
    action = next((act for name, act in _ACTIONS.items() if name in request.POST), _save)
    return action(request, tenant)


def _save(request: HttpRequest, tenant: Tenant) -> HttpResponse:
    values = _typed(request)
    try:
        services.save_connection(tenant=tenant, values=values, by=viewer_of(request), now=timezone.now())
    except (services.InvalidValue, services.ServiceError) as exc:
        return _refused(request, tenant, values, exc)
    words = "Single sign-on is on." if values.enabled else "Saved. Single sign-on is off until you enable it."
    messages.success(request, words, "fine")
    return redirect(_PATH)


def _test(request: HttpRequest, tenant: Tenant) -> HttpResponse:
    values = _typed(request)
    try:
        services.test_connection(tenant=tenant, values=values, now=timezone.now())
    except (services.InvalidValue, services.ServiceError) as exc:
        return _refused(request, tenant, values, exc)
    if values.protocol == SsoConnection.Protocol.SAML:
        note = "The metadata can be used. Nothing was saved. After you save, sign in once to try it."
        return _page(request, tenant, values=values, note=note)
    note = "The provider responds and accepts the client. Nothing was saved. Enter the client secret again to save it."
    return _page(request, tenant, values=values, note=note if values.client_secret else note.partition(" Enter")[0])


def _refused(request: HttpRequest, tenant: Tenant, values: services.SsoSettings, exc: Exception) -> HttpResponse:
    if isinstance(exc, services.InvalidValue):
        return _page(request, tenant, values=values, error=f"{exc.reason.capitalize()}.", at=exc.field, status=422)
    return _page(request, tenant, values=values, error=str(exc), status=409)


def _remove(request: HttpRequest, tenant: Tenant) -> HttpResponse:
    connection = access.get_sso_connection(viewer_of(request), tenant.id, access.MANAGE_SSO)
    words = "Single sign-on was removed. Its sessions have ended."
    act_and_report(request, lambda: services.remove_connection(connection=connection, by=viewer_of(request)), words)
    return redirect(_PATH)


def _require(request: HttpRequest, tenant: Tenant) -> HttpResponse:
    viewer, required = viewer_of(request), request.POST.get("require_sso") == "yes"
    words = "Members now need single sign-on." if required else "Members can sign in without single sign-on again."
    act_and_report(request, lambda: services.set_require_sso(tenant=tenant, required=required, by=viewer), words)
    return redirect(_PATH)


def _add_domain(request: HttpRequest, tenant: Tenant) -> HttpResponse:
    typed = request.POST.get("domain", "")
    words = "The domain was added. Create its DNS record, then verify it."
    act_and_report(request, lambda: services.add_domain(tenant=tenant, domain=typed, by=viewer_of(request)), words)
    return redirect(_PATH)


def _verify_domain(request: HttpRequest, tenant: Tenant) -> HttpResponse:
    domain = _domain(request, tenant, "verify_domain")
    words = f"{domain.domain} is verified."
    now = timezone.now()
    act_and_report(request, lambda: services.verify_domain(domain=domain, by=viewer_of(request), now=now), words)
    return redirect(_PATH)


def _remove_domain(request: HttpRequest, tenant: Tenant) -> HttpResponse:
    domain = _domain(request, tenant, "remove_domain")
    words = f"{domain.domain} was removed."
    act_and_report(request, lambda: services.remove_domain(domain=domain, by=viewer_of(request)), words)
    return redirect(_PATH)


_ACTIONS: Final[dict[str, _Action]] = {
    "test": _test,
    "remove": _remove,
    "require_sso": _require,
    "add_domain": _add_domain,
    "verify_domain": _verify_domain,
    "remove_domain": _remove_domain,
}


def _domain(request: HttpRequest, tenant: Tenant, field: str) -> SsoDomain:
    return access.get_sso_domain(viewer_of(request), tenant.id, request.POST.get(field, ""), access.MANAGE_SSO)


def _typed(request: HttpRequest) -> services.SsoSettings:
    form = request.POST
    return services.SsoSettings(
        protocol=form.get("protocol", SsoConnection.Protocol.OIDC),
        issuer=form.get("issuer", ""),
        client_id=form.get("client_id", ""),
        client_secret=form.get("client_secret", ""),
        metadata_url=form.get("metadata_url", ""),
        metadata_xml=form.get("metadata_xml", ""),
        subject_attribute=form.get("subject_attribute", ""),
        email_attribute=form.get("email_attribute", ""),
        trusts_email=form.get("trusts_email") == "yes",
        idp_initiated=form.get("idp_initiated") == "yes",
        enabled=form.get("enabled") == "yes",
        join_policy=form.get("join_policy", ""),
        default_role=form.get("default_role", ""),
    )


def _page(
    request: HttpRequest,
    tenant: Tenant,
    *,
    values: services.SsoSettings | None = None,
    note: str = "",
    error: str = "",
    at: str = "",
    status: int = 200,
) -> HttpResponse:
    connection = connection_of(tenant.id)
    shown = values or connection or SsoConnection()
    chosen = shown.protocol if request.method == "POST" else request.GET.get("protocol", shown.protocol)
    is_saml = chosen == SsoConnection.Protocol.SAML
    domains = domains_of(tenant.id)
    context: dict[str, Any] = {
        "connection": connection,
        "values": shown,
        "domains": [(row, record_name(row.domain)) for row in domains],
        "roles": [role for role in Membership.Role.values if role != Membership.Role.OWNER],
        "is_saml": is_saml,
        "connection_is_saml": connection is not None and connection.protocol == SsoConnection.Protocol.SAML,
        "certificates": [facts_of_certificate(one) for one in connection.certificates] if connection else [],
        "now": timezone.now(),
        "redirect_uri": redirect_uri_of(tenant),
        "entity_id": entity_id_of(tenant.id),
        "acs_url": acs_url_of(tenant.id),
        "name_id_format": PERSISTENT,
        "sign_in_url": sign_in_url_of(tenant),
        "note": note,
        "error": error,
        "error_at": at,
        "curl": as_curl(f"tenants/{tenant.id}/single-sign-on/"),
    }
    return show(request, "sso/settings.html", context, tenant=tenant, status=status)
