"""Pages of the sign-in by SAML: the provider's form arrives, then the person's session takes it over."""

from datetime import timedelta
from typing import Final

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme, urlencode
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_GET, require_POST

from mgmt import services
from mgmt.models import SsoConnection
from mgmt.sso.allauth_adapters import SsoAdapter, refusal, sso_connection_id_of
from mgmt.sso.pages.sign_in import TOO_MANY, connection_or_404
from mgmt.sso.saml.messages import own_metadata
from mgmt.sso.saml.response import check_response
from mgmt.sso.services.connections import acs_url_of, entity_id_of
from mgmt.sso.services.saml import HANDOFF_VALID, Handoff, keep_metadata_current, open_handoff, parties_of, seal_handoff
from mgmt.tenancy.services.rate_limits import TryLimit, hit, network_of

RESPONSES: Final = TryLimit("single sign-on: response", 300, timedelta(minutes=5))  # of one network and tenant
HANDOFF_COOKIE: Final = "penstock_saml"
_MOST_RELAY_STATE: Final = 300
_SAML: Final = SsoConnection.Protocol.SAML


@require_GET
def metadata(_request: HttpRequest, organisation: str) -> HttpResponse:
    """Return the metadata of a tenant's service. It depends on the address only, and is there before the connection."""
    document = own_metadata(entity_id=entity_id_of(organisation), acs_url=acs_url_of(organisation))
    return HttpResponse(document, content_type="application/samlmetadata+xml")


@never_cache
@csrf_exempt  # the form is the provider's: its signature is checked instead
@require_POST
def acs(request: HttpRequest, organisation: str) -> HttpResponse:
    """Check a response of the provider, then lead to `finish`.

    The browser sends no cookies with a form of another site. To begin a session here would therefore replace the one
    of a person who is signed in, without a question. The checked assertion travels in a cookie: only this browser has
    it, and no log of addresses does.
    """
    connection = connection_or_404(organisation, _SAML)
    network, now = network_of(request.META.get("REMOTE_ADDR", "")), timezone.now()
    if hit(RESPONSES, f"{network} {connection.tenant_id}", now):
        return refusal(request, connection, TOO_MANY, 429)
    try:
        keep_metadata_current(connection=connection, now=now)
        assertion = check_response(request.POST.get("SAMLResponse", ""), parties=parties_of(connection), now=now)
    except services.SsoError as exc:
        return refusal(request, connection, str(exc))
    relay_state = request.POST.get("RelayState", "")
    if len(relay_state) > _MOST_RELAY_STATE or not relay_state.isascii():
        relay_state = ""
    token = seal_handoff(connection=connection, handoff=Handoff(assertion, relay_state), now=now)
    answer = redirect("console:sso_saml_finish", organisation)
    answer.set_cookie(
        HANDOFF_COOKIE,
        token,
        max_age=HANDOFF_VALID,
        path=answer["Location"],
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )
    return answer


@never_cache
@require_GET
def finish(request: HttpRequest, organisation: str) -> HttpResponse:
    """Complete a sign-in in the person's session, once."""
    answer = _finish(request, connection_or_404(organisation, _SAML))
    answer.delete_cookie(HANDOFF_COOKIE, path=request.path, samesite="Lax")
    return answer


def _finish(request: HttpRequest, connection: SsoConnection) -> HttpResponse:
    """Return the response of `finish`.

    A response that nobody asked for exchanges no account: a person who is signed in goes through `start`, which asks.
    """
    token = request.COOKIES.get(HANDOFF_COOKIE, "")
    try:
        handoff = open_handoff(connection=connection, token=token, now=timezone.now())
        target = _target(request, handoff)
        is_other = sso_connection_id_of(request) != connection.id
        if request.user.is_authenticated and (is_other or not handoff.assertion.request_id):
            start = reverse("console:sso_start", args=[connection.tenant_id])
            return redirect(f"{start}?{urlencode({'next': target})}")
        provider = SsoAdapter(request).get_provider(request, connection.id)
        answer: HttpResponse = provider.complete(request, connection, handoff, target)
    except services.SsoError as exc:
        return refusal(request, connection, str(exc))
    return answer


def _target(request: HttpRequest, handoff: Handoff) -> str:
    """Return the page that a provider names when it starts the sign-in; home for any other address."""
    asked = handoff.relay_state
    safe = url_has_allowed_host_and_scheme(asked, {request.get_host()}, request.is_secure())
    return asked if asked.startswith("/") and safe else reverse("console:home")
