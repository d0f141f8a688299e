"""Pages of the sign-in by single sign-on: find the organisation, go to its provider, come back, link an account."""

from datetime import timedelta
from typing import Any, Final

from allauth.socialaccount.providers.base.constants import AuthProcess
from django.contrib import messages
from django.contrib.auth import logout
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods

from mgmt import services
from mgmt.ids import storable
from mgmt.models import SsoConnection, User
from mgmt.sso.admission import Identity
from mgmt.sso.allauth_adapters import (
    PENDING_KEY,
    OidcAdapter,
    OidcCallback,
    SsoAdapter,
    refusal,
    sso_connection_id_of,
)
from mgmt.sso.queries import enabled_connection, find_connection
from mgmt.sso.services.saml import keep_metadata_current
from mgmt.tenancy.row_scope import add_tenant
from mgmt.tenancy.services.rate_limits import TryLimit, hit, network_of
from mgmt.web.rendering import theme_of

FINDS: Final = TryLimit("single sign-on: address", 60, timedelta(minutes=5))
# Of one network and tenant: an office, whose people arrive at the same time by one address.
STARTS: Final = TryLimit("single sign-on: start", 300, timedelta(minutes=5))
TOO_MANY: Final = "Too many attempts. Wait five minutes, then try again."
LINK_VALID_S: Final = 600
_NOT_FOUND: Final = (
    "No single sign-on was found. Enter the exact name of your organisation, or ask its administrator for the sign-in "
    "address."
)


@never_cache
@require_http_methods(["GET", "POST"])
def find(request: HttpRequest) -> HttpResponse:
    """Ask for an e-mail address or an organisation, then show the way to its provider.

    A page, not a redirect: the content policy lets no form lead to another site.
    """
    typed, refused, status = request.POST.get("organisation", "")[:254], "", 200
    if request.method == "POST":
        if hit(FINDS, network_of(request.META.get("REMOTE_ADDR", "")), timezone.now()):
            refused, status = TOO_MANY, 429
        elif connection := find_connection(typed):
            return _continue(request, connection)
        else:
            refused, status = _NOT_FOUND, 404
    context = {"typed": typed, "refused": refused, "theme": theme_of(request)}
    return render(request, "sso/find.html", context, status=status)


@never_cache
@require_http_methods(["GET", "POST"])
def start(request: HttpRequest, organisation: str) -> HttpResponse:
    """Redirect to the provider of an organisation. Also the address for the provider's list of applications.

    Another site may lead here: it must not exchange the account of a person who is signed in. That takes a POST.
    """
    connection = connection_or_404(organisation)
    if request.method == "POST":
        logout(request)
        return _continue(request, connection)
    if request.user.is_authenticated and sso_connection_id_of(request) != connection.id:
        return _continue(request, connection)
    network = network_of(request.META.get("REMOTE_ADDR", ""))
    if hit(STARTS, f"{network} {connection.tenant_id}", timezone.now()):
        return refusal(request, connection, TOO_MANY, 429)
    target = request.GET.get("next", "")
    safe = url_has_allowed_host_and_scheme(target, {request.get_host()}, request.is_secure())
    try:
        if connection.protocol == SsoConnection.Protocol.SAML:
            keep_metadata_current(connection=connection, now=timezone.now())
        provider = SsoAdapter(request).get_provider(request, connection.id)
        return provider.redirect(request, AuthProcess.LOGIN, target if safe else reverse("console:home"))
    except services.SsoError as exc:
        return refusal(request, connection, str(exc))


@never_cache
@require_GET
def callback(request: HttpRequest, organisation: str) -> HttpResponse:
    """Complete a sign-in: redeem the code, check the token, admit the identity."""
    connection = connection_or_404(organisation, SsoConnection.Protocol.OIDC)
    if request.user.is_authenticated and sso_connection_id_of(request) != connection.id:
        return redirect("console:sso_start", organisation)  # signed in otherwise since the start: asks
    view = OidcCallback.adapter_view(OidcAdapter(request, connection.id))
    try:
        answer: HttpResponse = view(request)
    except services.SsoError as exc:
        return refusal(request, connection, str(exc))
    return answer


@never_cache
@require_http_methods(["GET", "POST"])
def link(request: HttpRequest) -> HttpResponse:
    """Link the identity that waits in the session to the account of its person, who signs in by existing means."""
    found = _pending(request)
    if found is None:
        return refusal(request, None, "Nothing waits to be linked. Start the sign-in again.")
    connection, identity = found
    user = request.user if isinstance(request.user, User) else None
    context: dict[str, Any] = {"connection": connection, "identity": identity, "user": user, "theme": theme_of(request)}
    if request.method != "POST" or user is None:
        return render(request, "sso/link.html", context)
    try:
        services.link_identity(connection=connection, identity=identity, user=user)
    except services.ServiceError as exc:
        return render(request, "sso/link.html", context | {"refused": str(exc)}, status=409)
    del request.session[PENDING_KEY]
    words = f"From now on you can sign in to {connection.tenant.name} by single sign-on."
    messages.success(request, words, "fine")
    return redirect("console:home")


def _continue(request: HttpRequest, connection: SsoConnection) -> HttpResponse:
    """Return the page that leads on to the provider; a person who is signed in is asked first."""
    query = request.GET.urlencode()
    context = {"connection": connection, "query": f"?{query}" if query else "", "theme": theme_of(request)}
    return render(request, "sso/continue.html", context)


def connection_or_404(organisation: str, protocol: str = "") -> SsoConnection:
    """Return the connection by which people of an organisation sign in, and show its rows. Raises Http404."""
    connection = enabled_connection(tenant=storable(organisation))
    if connection is None or protocol not in ("", connection.protocol):
        raise Http404
    add_tenant(connection.tenant_id)
    return connection


def _pending(request: HttpRequest) -> tuple[SsoConnection, Identity] | None:
    match request.session.get(PENDING_KEY):
        case [str(connection_id), str(subject), str(email), str(name), bool(is_verified), float(at)]:
            connection = enabled_connection(id=connection_id)
            if connection is None or timezone.now().timestamp() - at > LINK_VALID_S:
                return None
            add_tenant(connection.tenant_id)
            return connection, Identity(subject, email, name, is_verified=is_verified)
    return None
