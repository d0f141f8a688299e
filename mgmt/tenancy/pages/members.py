"""Members of a tenant and open invitations: list, invite, change a role, remove, leave."""

from collections.abc import Callable
from typing import Any, Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from mgmt import services
from mgmt.models import Invitation, Membership, Tenant
from mgmt.tenancy.queries import members_of, open_invitations
from mgmt.web import access
from mgmt.web.rendering import act_and_report, as_curl, for_members, selected_tenant, show, viewer_of

_Action = Callable[[HttpRequest, Tenant], HttpResponse]


@for_members
@require_http_methods(["GET", "POST"])
def members(request: HttpRequest) -> HttpResponse:
    """List members and open invitations; a POST runs the one of _ACTIONS that it names, or else invites."""
    tenant = selected_tenant(request)
    if request.method != "POST":
        return _page(request, tenant)
    action = next((act for name, act in _ACTIONS.items() if name in request.POST), _invite)
    return action(request, tenant)


def _invite(request: HttpRequest, tenant: Tenant) -> HttpResponse:
    viewer, now = viewer_of(request), timezone.now()
    tenant = access.get_tenant(viewer, tenant.id, access.MANAGE_MEMBERS)
    email, role = request.POST.get("email", ""), request.POST.get("as_role", "")
    try:
        invitation = services.invite_member(tenant=tenant, email=email, role=role, by=viewer, now=now)
    except services.InvalidValue as exc:
        return _page(request, tenant, error=f"{exc.reason.capitalize()}.", email=email, role=role, status=422)
    except services.ServiceError as exc:
        return _page(request, tenant, error=str(exc), email=email, role=role, status=409)
    _report_mail(request, invitation)
    return redirect("console:members")


def _change_role(request: HttpRequest, tenant: Tenant) -> HttpResponse:
    member, role = _member(request, tenant, "role", access.MANAGE_MEMBERS), request.POST.get("new_role", "")
    words = f"{member.user.get_username()} is now {role} of {tenant.name}."
    act_and_report(request, lambda: services.change_role(membership=member, role=role, by=viewer_of(request)), words)
    return redirect("console:members")


def _remove(request: HttpRequest, tenant: Tenant) -> HttpResponse:
    member = _member(request, tenant, "remove", access.MANAGE_MEMBERS)
    words = f"{member.user.get_username()} is no longer a member of {tenant.name}."
    act_and_report(request, lambda: services.remove_member(membership=member, by=viewer_of(request)), words)
    return redirect("console:members")


def _leave(request: HttpRequest, tenant: Tenant) -> HttpResponse:
    viewer = viewer_of(request)
    member = access.get_member(viewer, tenant.id, viewer.get_username())
    words = f"You left {tenant.name}."
    act_and_report(request, lambda: services.remove_member(membership=member, by=viewer), words)
    return redirect("console:home")


def _resend(request: HttpRequest, tenant: Tenant) -> HttpResponse:
    invitation = _invitation(request, tenant, "resend")
    try:
        services.resend_invitation(invitation=invitation, by=viewer_of(request), now=timezone.now())
    except services.ServiceError as exc:
        messages.error(request, str(exc), "bad")
    else:
        _report_mail(request, invitation)
    return redirect("console:members")


def _revoke(request: HttpRequest, tenant: Tenant) -> HttpResponse:
    invitation = _invitation(request, tenant, "revoke")
    services.revoke_invitation(invitation=invitation, by=viewer_of(request), now=timezone.now())
    messages.success(request, f"The invitation of {invitation.email} is no longer valid.", "fine")
    return redirect("console:members")


def _require_mfa(request: HttpRequest, tenant: Tenant) -> HttpResponse:
    viewer, required = viewer_of(request), request.POST.get("require_mfa") == "yes"
    tenant = access.get_tenant(viewer, tenant.id, access.MANAGE_MEMBERS)
    words = "Members now need a second factor." if required else "Members no longer need a second factor."
    act_and_report(request, lambda: services.set_require_mfa(tenant=tenant, required=required, by=viewer), words)
    return redirect("console:members")


_ACTIONS: Final[dict[str, _Action]] = {
    "role": _change_role,
    "remove": _remove,
    "leave": _leave,
    "resend": _resend,
    "revoke": _revoke,
    "require_mfa": _require_mfa,
}


def _member(request: HttpRequest, tenant: Tenant, field: str, need: str) -> Membership:
    return access.get_member(viewer_of(request), tenant.id, request.POST.get(field, ""), need)


def _invitation(request: HttpRequest, tenant: Tenant, field: str) -> Invitation:
    chosen = request.POST.get(field, "")
    return access.get_invitation(viewer_of(request), tenant.id, chosen, access.MANAGE_MEMBERS)


def _report_mail(request: HttpRequest, invitation: Invitation) -> None:
    if invitation.mail_error:
        messages.error(request, f"The e-mail to {invitation.email} was not sent: {invitation.mail_error}", "bad")
    else:
        messages.success(request, f"We sent an invitation to {invitation.email}.", "fine")


def _page(
    request: HttpRequest, tenant: Tenant, *, error: str = "", email: str = "", role: str = "", status: int = 200
) -> HttpResponse:
    now = timezone.now()
    context: dict[str, Any] = {
        "members": members_of(tenant.id),
        "invitations": open_invitations(tenant.id),
        "now": now,
        "roles": list(Membership.Role.values),
        "error": error,
        "email": email,
        "role": role or Membership.Role.VIEWER,
        "curl": as_curl(f"tenants/{tenant.id}/invitations/", {"email": "ada@example.com", "role": "viewer"}),
    }
    return show(request, "tenancy/members.html", context, tenant=tenant, status=status)
