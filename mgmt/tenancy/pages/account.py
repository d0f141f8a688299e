"""Account page of the signed-in user: e-mail, password, second factors and sessions, which django-allauth changes."""

from typing import Any

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.usersessions.models import UserSession
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from mgmt.web.rendering import for_members, show, tenant_of, viewer_of


@for_members
@require_safe
def account(request: HttpRequest) -> HttpResponse:
    """Show how the viewer signs in, with a link to each change."""
    viewer = viewer_of(request)
    factors = list(Authenticator.objects.filter(user=viewer).order_by("created_at"))
    context: dict[str, Any] = {
        "address": EmailAddress.objects.filter(user=viewer, verified=True).order_by("-primary").first(),
        "app": next((one for one in factors if one.type == Authenticator.Type.TOTP), None),
        "passkeys": [one for one in factors if one.type == Authenticator.Type.WEBAUTHN],
        "codes": next((one for one in factors if one.type == Authenticator.Type.RECOVERY_CODES), None),
        "session_count": UserSession.objects.filter(user=viewer).count(),
    }
    return show(request, "tenancy/account.html", context, tenant=tenant_of(request))
