"""Customer portal in the console: the sites that may embed it, and the open links with their revocation."""

from typing import Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST

from mgmt import services
from mgmt.portal.queries import example_destination, open_portal_links
from mgmt.portal.services import MAX_ORIGINS
from mgmt.web import access
from mgmt.web.rendering import as_curl, for_members, selected_tenant, show, viewer_of

MOST_LISTED: Final = 100


@for_members
@require_http_methods(["GET", "POST"])
def portal_links(request: HttpRequest) -> HttpResponse:
    """List the open portal links of the tenant; a POST sets the sites that may embed the portal."""
    tenant, error = selected_tenant(request), ""
    origins = "\n".join(tenant.portal_origins)
    if request.method == "POST":
        tenant = access.get_tenant(viewer_of(request), tenant.id, access.MANAGE_PORTAL)
        origins = request.POST.get("origins", "")
        try:
            services.set_portal_origins(tenant=tenant, origins=origins.split(), by=viewer_of(request))
        except services.InvalidValue as exc:
            error = exc.reason
        else:
            messages.success(request, "The sites are saved. They apply to the next request.", "fine")
            return redirect("console:portal_links")
    body = {"label": "Acme Ltd", "minutes": 60, "may_redrive": True, "may_edit": True}
    links = open_portal_links(tenant_id=tenant.id, now=timezone.now())
    example = example_destination(tenant.id)
    context = {
        "links": links[:MOST_LISTED],
        "count": links.count(),
        "origins": origins,
        "error": error,
        "max_origins": MAX_ORIGINS,
        "may_set": access.may(access.role_in(viewer_of(request), tenant.id), access.MANAGE_PORTAL),
        "curl": example and as_curl(f"pipes/{example.pipe_id}/destinations/{example.name}/portal-links/", body),
    }
    return show(request, "portal/links.html", context, tenant=tenant, status=422 if error else 200)


@for_members
@require_POST
def revoke_portal_links(request: HttpRequest, pipe_id: str, name: str) -> HttpResponse:
    """Revoke all portal links of a destination."""
    row = access.get_destination(viewer_of(request), pipe_id, name, access.SHARE_PORTAL)
    count = services.revoke_portal_links(destination=row, now=timezone.now(), by=viewer_of(request))
    messages.success(request, f"{count} portal link{'s' if count != 1 else ''} of {name} revoked.", "fine")
    return redirect("console:portal_links")
