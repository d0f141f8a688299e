"""Staff page of tenants: list them, create one, invite an owner."""

from typing import Any, Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from mgmt import services
from mgmt.ids import storable
from mgmt.models import Invitation, Membership, Tenant
from mgmt.tenancy.queries import tenants_for_staff
from mgmt.web.rendering import for_staff, show, tenant_of, viewer_of

MOST_TENANTS: Final = 200


@for_staff
@require_http_methods(["GET", "POST"])
def tenants(request: HttpRequest) -> HttpResponse:
    """List tenants; a POST creates one and invites its owner, or invites another owner of the one in `tenant`."""
    if request.method != "POST":
        return _page(request)
    name, email = request.POST.get("name", ""), request.POST.get("owner_email", "")
    try:
        invitation = _invite_owner(request, email) if "tenant" in request.POST else _open(request, name, email)
    except services.InvalidValue as exc:
        typed = {"name": name, "owner_email": email, "error": f"{exc.reason.capitalize()}.", "error_at": exc.field}
        return _page(request, typed, status=422)
    except services.ServiceError as exc:
        return _page(request, {"name": name, "owner_email": email, "error": str(exc)}, status=409)
    _report(request, invitation)
    return redirect("console:tenants")


def _open(request: HttpRequest, name: str, email: str) -> Invitation:
    by, now = viewer_of(request), timezone.now()
    _tenant, invitation = services.open_tenant(name=name, owner_email=email, by=by, now=now)
    return invitation


def _invite_owner(request: HttpRequest, email: str) -> Invitation:
    """Invite an owner of a tenant whose owners can no longer sign in, or whose invitation expired."""
    tenant = Tenant.objects.get(id=storable(request.POST["tenant"]))
    by, role = viewer_of(request), Membership.Role.OWNER
    try:
        return services.invite_member(tenant=tenant, email=email, role=role, by=by, now=timezone.now())
    except services.InvalidValue as exc:
        raise services.InvalidValue("owner_email", exc.reason) from exc


def _report(request: HttpRequest, invitation: Invitation) -> None:
    if invitation.mail_error:
        words = f"{invitation.tenant.name}: the e-mail to {invitation.email} was not sent: {invitation.mail_error}"
        messages.error(request, words, "bad")
    else:
        messages.success(request, f"We invited {invitation.email} as owner of {invitation.tenant.name}.", "fine")


def _page(request: HttpRequest, typed: dict[str, Any] | None = None, *, status: int = 200) -> HttpResponse:
    rows = tenants_for_staff()[: MOST_TENANTS + 1]
    context = {
        "tab": "tenants",
        "rows": rows[:MOST_TENANTS],
        "chosen": request.POST.get("tenant", "") if typed else "",
        **(typed or {}),
    }
    return show(request, "tenancy/tenants.html", context, tenant=tenant_of(request), status=status)
