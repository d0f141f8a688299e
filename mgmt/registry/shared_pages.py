"""Shared catalogue: the page on which owners create and revoke links, and the pages that a link opens.

A link shows types, versions, fields and changes. It shows no pipe, no member, no traffic and no event.
"""

from datetime import timedelta
from typing import Any, Final

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from mgmt import services
from mgmt.models import CatalogueLink, Subject
from mgmt.registry.catalogue_links import MAX_DAYS, MAX_LINKS
from mgmt.registry.queries import open_links, shared_link, shown_versions, with_figures
from mgmt.registry.version_views import MOST_VERSIONS, version_view
from mgmt.tenancy.row_scope import add_tenant
from mgmt.tenancy.secrets import link_token_digest
from mgmt.tenancy.services.rate_limits import TryLimit, hit, network_of
from mgmt.web import access
from mgmt.web.rendering import as_curl, for_members, number_of, selected_tenant, show, theme_of, unlisted, viewer_of

DAYS: Final = 30  # until a new link expires, unless it is changed
VIEWS: Final = TryLimit("catalogue: address", 240, timedelta(minutes=5))


@for_members
@require_http_methods(["GET", "POST"])
@sensitive_variables("token")
def catalogue_links(request: HttpRequest) -> HttpResponse:
    """List the tenant's links; a POST creates one and shows it once."""
    tenant, now = selected_tenant(request), timezone.now()
    context: dict[str, Any] = {"days": DAYS, "label": "", "max_days": MAX_DAYS, "max_links": MAX_LINKS}
    status = 200
    if request.method == "POST":
        tenant = access.get_tenant(viewer_of(request), tenant.id, access.SHARE_CATALOGUE)
        label, days = request.POST.get("label", ""), number_of(request.POST.get("days"))
        context |= {"label": label, "days": request.POST.get("days", "")}
        try:
            link, token = services.create_catalogue_link(
                tenant=tenant, author=viewer_of(request), label=label, days=days, now=now
            )
        except services.InvalidValue as exc:
            context |= {"error": exc.reason, "error_at": exc.field}
            status = 422
        except services.ServiceError as exc:
            context |= {"error": str(exc)}
            status = 409
        else:
            url = f"{settings.PENSTOCK_WEB_URL}{reverse('console:shared_catalogue', args=[token])}"
            context |= {"created": link, "url": url, "label": "", "days": DAYS}
    body = {"label": "Partner", "days": DAYS}
    curl = as_curl(f"tenants/{tenant.id}/schemas/links/", body)
    context |= {"links": open_links(tenant.id, now), "curl": curl}
    return show(request, "registry/links.html", context, tenant=tenant, status=status)


@for_members
@require_POST
def revoke_catalogue_link(request: HttpRequest, link_id: str) -> HttpResponse:
    """Revoke a link."""
    link = access.get_catalogue_link(viewer_of(request), selected_tenant(request).id, link_id, access.SHARE_CATALOGUE)
    services.revoke_catalogue_link(link=link, now=timezone.now(), by=viewer_of(request))
    messages.success(request, f"The link for {link.label} no longer opens the catalogue.", "fine")
    return redirect("console:catalogue_links")


@require_safe
def shared_catalogue(request: HttpRequest, token: str) -> HttpResponse:
    """List the subjects that a link shows."""
    link = _opened(request, token)
    if isinstance(link, HttpResponse):
        return link
    rows = with_figures(Subject.objects.filter(tenant=link.tenant_id, versions__number=1)).order_by("name")
    context = {"subjects": list(rows), "token": token, "link": link}
    return _page(request, "registry/shared_subjects.html", context)


@require_safe
def shared_subject(request: HttpRequest, token: str, subject_id: str) -> HttpResponse:
    """Show one subject of a shared catalogue: the fields of a version (`version`), and its changes (`since`)."""
    link = _opened(request, token)
    if isinstance(link, HttpResponse):
        return link
    rows = with_figures(Subject.objects.filter(tenant=link.tenant_id, versions__number=1))
    row = rows.filter(id=subject_id.replace("\x00", "")).first()
    if row is None:
        return _refused(request, 404)
    wanted = [number_of(request.GET.get(name)) for name in ("version", "since")]
    versions = shown_versions(row, MOST_VERSIONS, *wanted)
    view = version_view(versions, *wanted)
    context = {"subject": row, "versions": versions, "token": token, "link": link} | view
    return _page(request, "registry/shared_subject.html", context)


def _opened(request: HttpRequest, token: str) -> CatalogueLink | HttpResponse:
    """Return the open link of a token, or the response for an unknown one, or for too many requests."""
    now = timezone.now()
    if wait_s := hit(VIEWS, network_of(request.META.get("REMOTE_ADDR", "")), now):
        response = _refused(request, 429)
        response["Retry-After"] = str(wait_s)
        return response
    link = shared_link(link_token_digest(token), now)
    if link is None:
        return _refused(request, 404)
    add_tenant(link.tenant_id)
    return link


def _refused(request: HttpRequest, status: int) -> HttpResponse:
    return _page(request, "registry/no_catalogue.html", {"is_limited": status == 429}, status)


def _page(request: HttpRequest, template: str, context: dict[str, Any], status: int = 200) -> HttpResponse:
    response = unlisted(render(request, template, context | {"theme": theme_of(request)}, status=status))
    response["Referrer-Policy"] = "no-referrer"  # the address is the credential
    return response
