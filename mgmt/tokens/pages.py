"""API tokens of the selected tenant: list, create and revoke; and its service accounts."""

from typing import Any, Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_http_methods, require_POST

from mgmt import services
from mgmt.models import ApiToken, Membership, Tenant, User
from mgmt.tokens.presenters import token_lines
from mgmt.tokens.queries import scopes_up_to, service_accounts_of
from mgmt.tokens.services.service_accounts import MAX_ACCOUNTS
from mgmt.tokens.services.tokens import DEFAULT_DAYS, MAX_TOKENS
from mgmt.web import access
from mgmt.web.rendering import act_and_report, as_curl, for_members, number_of, selected_tenant, show, viewer_of

MOST_SHOWN: Final = 200
LIFETIMES: Final = (7, 30, DEFAULT_DAYS, 180, 365)  # days
NEVER: Final = "never"
SCOPE_MEANINGS: Final = {
    ApiToken.Scope.READ: "read everything",
    ApiToken.Scope.OPERATE: "also pause, redrive, replay and handle alerts",
    ApiToken.Scope.PUBLISH: "also create pipes and keys, and publish revisions",
    ApiToken.Scope.ADMIN: "also manage members and tokens, and close pipes",
}
_FIELDS: Final = ("name", "scope", "pipe", "account", "days")


@for_members
@require_http_methods(["GET", "POST"])
@sensitive_variables("text")
def tokens(request: HttpRequest) -> HttpResponse:
    """List the viewer's tokens, for an owner all of the tenant's; a POST creates one and shows it once."""
    tenant = selected_tenant(request)
    context: dict[str, Any] = {"typed": {"scope": ApiToken.Scope.READ, "days": str(DEFAULT_DAYS)}}
    status = 200
    if request.method == "POST":
        typed = {name: request.POST.get(name, "") for name in _FIELDS}
        try:
            token, text = _create(viewer_of(request), tenant, typed)
        except services.InvalidValue as exc:
            context, status = {"typed": typed, "error": exc.reason, "error_at": exc.field}, 422
        except services.ServiceError as exc:
            context, status = {"typed": typed, "error": str(exc)}, 409
        else:
            curl = as_curl(f"pipes/{token.pipe_id}/" if token.pipe_id else "me/", token=text)
            context |= {"created": token, "text": text, "created_curl": curl}
    return _page(request, tenant, context, status)


@for_members
@require_POST
def revoke_token(request: HttpRequest, token_id: str) -> HttpResponse:
    """Revoke a token."""
    viewer = viewer_of(request)
    token = access.get_token_to_revoke(viewer, selected_tenant(request).id, token_id)
    services.revoke_token(token=token, by=viewer, now=timezone.now())
    messages.success(request, f"The token {token.name} is revoked. Requests with it get 401.", "fine")
    return redirect("console:tokens")


@for_members
@require_POST
def create_account(request: HttpRequest) -> HttpResponse:
    """Create a service account."""
    viewer = viewer_of(request)
    tenant = access.get_tenant(viewer, selected_tenant(request).id, access.MANAGE_TOKENS)
    name, role = request.POST.get("name", "").strip(), request.POST.get("role", "")
    act_and_report(
        request,
        lambda: services.create_service_account(tenant=tenant, name=name, role=role, by=viewer, now=timezone.now()),
        f"The service account {name} is created. Now create a token of it.",
    )
    return redirect("console:tokens")


@for_members
@require_POST
def change_account(request: HttpRequest, account_id: str) -> HttpResponse:
    """Set the role of a service account (`role`), or disable or enable it (`active`)."""
    viewer = viewer_of(request)
    account = access.get_service_account(viewer, selected_tenant(request).id, account_id, access.MANAGE_TOKENS)
    active = {"yes": True, "no": False}.get(request.POST.get("active", ""))
    role = request.POST.get("role", "") if active is None else None
    words = {
        True: f"{account.name} is enabled.",
        False: f"{account.name} is disabled: its tokens get 401.",
        None: f"{account.name} now has the role {role}.",
    }
    act_and_report(
        request,
        lambda: services.change_service_account(account=account, by=viewer, role=role, is_active=active),
        words[active],
    )
    return redirect("console:tokens")


@for_members
@require_POST
def remove_account(request: HttpRequest, account_id: str) -> HttpResponse:
    """Remove a service account and revoke its tokens."""
    viewer = viewer_of(request)
    account = access.get_service_account(viewer, selected_tenant(request).id, account_id, access.MANAGE_TOKENS)
    services.remove_service_account(account=account, by=viewer, now=timezone.now())
    messages.success(request, f"The service account {account.name} is removed and its tokens are revoked.", "fine")
    return redirect("console:tokens")


def _create(viewer: User, tenant: Tenant, typed: dict[str, str]) -> tuple[ApiToken, str]:
    """Create the token of the form. Raises InvalidValue, ServiceError, ObjectDoesNotExist."""
    user = viewer
    if typed["account"]:
        user = access.get_service_account(viewer, tenant.id, typed["account"], access.MANAGE_TOKENS).user
    return services.create_token(
        tenant=tenant,
        user=user,
        by=viewer,
        name=typed["name"],
        scope=typed["scope"],
        pipe=access.get_pipe(viewer, typed["pipe"]) if typed["pipe"] else None,
        days=None if typed["days"] == NEVER else number_of(typed["days"]),
        now=timezone.now(),
    )


def _page(request: HttpRequest, tenant: Tenant, context: dict[str, Any], status: int) -> HttpResponse:
    viewer, now = viewer_of(request), timezone.now()
    role = access.role_in(viewer, tenant.id) or access.READ
    found = access.tokens_of(viewer, tenant).filter(revoked_at=None)[:MOST_SHOWN]
    full = context | {
        "lines": token_lines(found, now),
        "accounts": service_accounts_of(tenant.id),
        "pipes": access.pipes_of(viewer).filter(tenant=tenant).order_by("name"),
        "scopes": [(scope, SCOPE_MEANINGS[scope]) for scope in scopes_up_to(role)],
        "roles": list(Membership.Role),
        "lifetimes": LIFETIMES,
        "never": NEVER,
        "max_tokens": MAX_TOKENS,
        "max_accounts": MAX_ACCOUNTS,
        "curl": as_curl(f"tenants/{tenant.id}/tokens/", {"name": "CI", "scope": "read"}),
    }
    return show(request, "tokens/tokens.html", full, tenant=tenant, status=status)
