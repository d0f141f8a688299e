"""Go to a page or a pipe by its name: the command palette, and the same list as a page for browsers without scripts."""

from typing import Final

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from mgmt.web import access
from mgmt.web.navigation import rail
from mgmt.web.rendering import for_members, once, show, tenant_of, viewer_of

MOST: Final = 20
_MOST_CHARS: Final = 100


@for_members
@require_safe
def go(request: HttpRequest) -> HttpResponse:
    """List the console's pages, and the selected tenant's pipes, whose name contains `q`."""
    viewer, tenant = viewer_of(request), tenant_of(request)
    q = request.GET.get("q", "").replace("\x00", "").strip()[:_MOST_CHARS]

    def targets() -> list[tuple[str, str, str]]:
        """Return name, kind and URL of each target: pages first."""
        role = access.role_in(viewer, tenant.id) if tenant else None
        groups = rail(
            "",
            has_tenant=tenant is not None,
            is_staff=viewer.is_staff,
            may_audit=access.may(role, access.READ_AUDIT),
            may_sso=access.may(role, access.MANAGE_SSO),
        )
        found = [(entry.name, "page", entry.url) for group in groups for entry in group.entries]
        found = [one for one in found if q.lower() in one[0].lower()]
        pipes = access.pipes_of(viewer).filter(tenant=tenant, name__icontains=q).order_by("name")[: MOST - len(found)]
        return found + [(pipe.name, "pipe", reverse("console:pipe", args=[pipe.id])) for pipe in pipes]

    context, template = {"q": q, "most": MOST, "get_targets": once(targets)}, "pipes/go.html"
    return show(request, template, context, tenant=tenant, live={"targets": template})
