"""Adapters of django-allauth for single sign-on: its OpenID Connect flow with Penstock's connections and rules.

allauth keeps state, PKCE and redirects; mgmt.sso.oidc checks the tokens, mgmt.sso.saml the assertions, and
mgmt.sso.admission decides who signs in.
"""

import secrets
from datetime import UTC, datetime, timedelta
from typing import Any, Final, cast

import requests
import structlog
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.helpers import complete_social_login
from allauth.socialaccount.internal.statekit import get_states, unstash_state
from allauth.socialaccount.models import SocialApp, SocialToken
from allauth.socialaccount.providers.base import Provider
from allauth.socialaccount.providers.base.constants import AuthError, AuthProcess
from allauth.socialaccount.providers.oauth2.views import OAuth2CallbackView
from allauth.socialaccount.providers.openid_connect.provider import OpenIDConnectProvider
from allauth.socialaccount.providers.openid_connect.views import OpenIDConnectOAuth2Adapter
from django.db import IntegrityError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone

from mgmt.errors import ServiceError, SsoError
from mgmt.ids import storable
from mgmt.models import SsoConnection, User
from mgmt.sso.admission import Identity, SsoRefused
from mgmt.sso.http import GuardedSession, get_json
from mgmt.sso.oidc import (
    ProviderMetadata,
    access_token_in,
    check_id_token,
    discover,
    fetch_keys,
    used_claims,
    uses_basic_auth,
)
from mgmt.sso.provider_steps import provider_step
from mgmt.sso.queries import enabled_connection
from mgmt.sso.saml.messages import sign_in_redirect
from mgmt.sso.saml.response import SamlAssertion
from mgmt.sso.services.connections import client_secret_of, redirect_uri_of
from mgmt.sso.services.saml import Handoff, parties_of, use_assertion
from mgmt.sso.services.sign_in import admit_identity, note_sso_sign_in
from mgmt.tenancy.allauth_adapters import AccountAdapter
from mgmt.tenancy.row_scope import add_tenant
from mgmt.web.rendering import choose_tenant, theme_of

PENDING_KEY: Final = "sso_pending"  # identity that waits to be linked, in the session
SESSION_S: Final = 12 * 3600  # a person who has left the organisation keeps a session no longer
# Id of the connection. It ends with the session only: allauth's own list of methods is cleared with a pending login.
_SESSION_KEY: Final = "sso_connection"
log = structlog.get_logger(__name__)


def sso_connection_id_of(request: HttpRequest) -> str:
    """Return the id of the connection by which the session's user signed in; "" for a sign-in by own means."""
    return str(request.session.get(_SESSION_KEY, ""))


class OidcAdapter(OpenIDConnectOAuth2Adapter):  # type: ignore[misc]  # the package has no types
    """Flow of one connection: metadata and tokens are fetched through the guard and checked by mgmt.sso.oidc."""

    nonce = ""  # of the sign-in, set by the callback from the session's state

    @property
    def metadata(self) -> ProviderMetadata:
        """Metadata of the issuer, fetched once per request. Raises SsoError."""
        if not hasattr(self, "_metadata"):
            self._metadata = discover(self.get_provider().app.settings["server_url"])
        found: ProviderMetadata = self._metadata
        return found

    @property
    def openid_config(self) -> dict[str, Any]:
        """Metadata as allauth reads it."""
        return self.metadata.document

    @property
    def basic_auth(self) -> bool:
        """Return True if the client secret is sent in the Authorization header."""
        return uses_basic_auth(self.metadata.document)

    def get_callback_url(self, _request: HttpRequest, app: SocialApp) -> str:
        """Return the configured address: the request's Host header is the client's."""
        uri: str = app.settings["redirect_uri"]
        return uri

    def get_access_token_data(self, *args: Any, **kwargs: Any) -> Any:
        """Redeem the code. allauth reads what the provider returns without a look at its types. Raises SsoError."""
        try:
            return super().get_access_token_data(*args, **kwargs)
        except (ValueError, TypeError, LookupError, RecursionError) as exc:
            raise SsoError("The provider's token endpoint does not respond as OAuth 2.0 requires.") from exc

    def parse_token(self, data: Any) -> SocialToken:
        """Return the access token, which is used at once and not stored: its expiry is of no use. Raises SsoError."""
        return SocialToken(token=access_token_in(data))

    def complete_login(self, request: HttpRequest, app: SocialApp, token: Any, **kwargs: Any) -> Any:
        """Check the ID token of the response. Raises SsoError."""
        claims = check_id_token(
            str(kwargs["response"].get("id_token", "")),
            keys=fetch_keys(self.metadata),
            issuer=self.metadata.issuer,
            client_id=app.client_id,
            nonce=self.nonce,
        )
        if "email" not in claims and self.metadata.userinfo_endpoint:
            userinfo = self._user_info(token.token)
            if userinfo.get("sub") != claims["sub"]:  # OpenID Connect Core 5.3.2
                raise SsoError("The provider's user information is of another person. Sign in again.")
            claims = {**userinfo, **claims}
        return self.get_provider().sociallogin_from_response(request, used_claims(claims))

    def _user_info(self, access_token: str) -> dict[str, Any]:
        try:
            return get_json(self.metadata.userinfo_endpoint, {"Authorization": f"Bearer {access_token}"})
        except ValueError as exc:
            raise SsoError("The provider's user information is not a JSON document. Sign in again.") from exc


class OidcProvider(OpenIDConnectProvider):  # type: ignore[misc]  # the package has no types
    """Provider of one connection, with PKCE and a nonce."""

    oauth2_adapter_class = OidcAdapter

    def redirect(
        self, request: HttpRequest, process: str, next_url: str | None = None, data: Any = None, **kwargs: Any
    ) -> HttpResponse:
        """Redirect to the provider; the nonce is in the state, which the session keeps.

        After a refusal the provider is asked for a new sign-in, so that the person can choose another account there.
        """
        nonce = secrets.token_urlsafe(24)
        kwargs["auth_params"] = {"nonce": nonce} | ({"prompt": "login"} if "again" in request.GET else {})
        with provider_step(self.app.settings["tenant"]):
            answer: HttpResponse = super().redirect(request, process, next_url, data, nonce=nonce, **kwargs)
        return answer

    def serialize(self) -> dict[str, Any]:
        """Return the connection as `SsoAdapter.get_provider` reads it, while a second factor is asked for."""
        return {"id": self.app.provider_id, "app.client_id": self.app.client_id}

    def extract_extra_data(self, _data: Any) -> dict[str, Any]:
        """Return nothing: no claims are stored."""
        return {}


class OidcCallback(OAuth2CallbackView):  # type: ignore[misc]  # the package has no types
    """allauth's callback as one bounded step, which gives the nonce of the state to the check of the token."""

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Complete the sign-in. Raises SsoError."""
        if request.GET.get("state") not in get_states(request):  # refused below, without a request to the provider
            return cast("HttpResponse", super().dispatch(request, *args, **kwargs))
        with provider_step(self.adapter.get_provider().app.settings["tenant"]):
            answer: HttpResponse = super().dispatch(request, *args, **kwargs)
        return answer

    def _get_state(self, request: HttpRequest, provider: Any) -> Any:
        state, refused = super()._get_state(request, provider)
        if state is not None:
            self.adapter.nonce = state["nonce"]
        return state, refused


class SamlProvider(Provider):  # type: ignore[misc]  # the package has no types
    """Provider of one connection by SAML. The request of a sign-in is a state of the session, as for OpenID Connect."""

    id = name = "saml"
    supports_redirect = True

    def redirect(
        self, request: HttpRequest, process: str, next_url: str | None = None, data: Any = None, **kwargs: Any
    ) -> HttpResponse:
        """Redirect to the provider; after a refusal it is asked for a new sign-in, as `OidcProvider` does."""
        request_id = f"_{secrets.token_hex(20)}"
        self.stash_redirect_state(request, process, next_url, data, state_id=request_id, **kwargs)
        settings = self.app.settings
        return redirect(
            sign_in_redirect(
                settings["sso_url"],
                parties=settings["parties"],
                request_id=request_id,
                now=timezone.now(),
                asks_again="again" in request.GET,
            )
        )

    def complete(self, request: HttpRequest, connection: SsoConnection, handoff: Handoff, target: str) -> HttpResponse:
        """Sign in by a checked assertion. `target`: page of a sign-in that the provider started. Raises SsoError."""
        assertion = handoff.assertion
        if assertion.request_id:
            state = unstash_state(request, state_id=assertion.request_id, provider_id=connection.id)
            if state is None or handoff.relay_state != assertion.request_id:
                raise SsoError("This sign-in has expired or was started in another browser. Start again.")
        elif connection.idp_initiated:
            state = {"process": AuthProcess.LOGIN, "next": target, "by_provider": True}
        else:
            raise SsoError(
                "Your organisation's identity provider may not start a sign-in here. Use Try again, or let an owner "
                "permit it on the page Single sign-on."
            )
        use_assertion(connection=connection, assertion=assertion, now=timezone.now())
        login = self.sociallogin_from_response(request, assertion)
        ends_at = assertion.session_ends_at
        login.state = state | {"session_ends_at": ends_at.timestamp() if ends_at else None}
        answer: HttpResponse = complete_social_login(request, login)
        return answer

    def serialize(self) -> dict[str, Any]:
        """Return the connection as `SsoAdapter.get_provider` reads it, while a second factor is asked for."""
        return {"id": self.app.provider_id}

    def extract_uid(self, data: SamlAssertion) -> str:
        """Return the subject."""
        return data.subject

    def extract_common_fields(self, data: SamlAssertion) -> dict[str, Any]:
        """Return the address. SAML has no word for a verified one: an owner says so of all."""
        return {"email": data.email, "email_verified": self.app.settings["trusts_email"]}

    def extract_extra_data(self, _data: SamlAssertion) -> dict[str, Any]:
        """Return nothing: no attributes are stored."""
        return {}


class SsoAdapter(DefaultSocialAccountAdapter):  # type: ignore[misc]  # the package has no types
    """allauth's hooks: applications are the rows of SsoConnection, and sign-in follows mgmt.sso.admission."""

    def list_apps(self, _request: HttpRequest, provider: str | None = None, client_id: str | None = None) -> list[Any]:
        """Return the application of a connection, with its decrypted secret; it is never stored."""
        row = enabled_connection(id=storable(provider or ""))
        if row is None or (client_id and client_id != row.client_id):
            return []
        return [app_of(row)]

    def get_provider(
        self, request: HttpRequest, provider: str, client_id: str | None = None
    ) -> OidcProvider | SamlProvider:
        """Return the provider of a connection.

        Raises ValueError if it is not enabled any more, by which allauth drops a login that waits for a second factor.
        """
        try:
            app = self.get_app(request, provider, client_id)
        except SocialApp.DoesNotExist as exc:
            raise ValueError("no enabled connection has this id") from exc
        kind = SamlProvider if app.provider == SamlProvider.id else OidcProvider
        return kind(request, app=app)

    def get_requests_session(self) -> GuardedSession:
        """Return a session whose connections the guard checks."""
        return GuardedSession()

    def pre_social_login(self, request: HttpRequest, sociallogin: Any) -> None:
        """Admit the identity: set the account that signs in. Raises ImmediateHttpResponse for all other outcomes."""
        connection = enabled_connection(id=sociallogin.account.provider)
        if connection is None:
            raise ImmediateHttpResponse(refusal(request, None, "Single sign-on was turned off meanwhile."))
        identity = identity_of(sociallogin)
        try:
            user = _admit(connection, identity)
        except (SsoRefused, ServiceError) as exc:
            log.info("single sign-on refused", tenant=connection.tenant_id, reason=str(exc))
            raise ImmediateHttpResponse(refusal(request, connection, str(exc))) from exc
        if user is None and sociallogin.state.get("by_provider"):
            # Another site can send such a response: it may be of another person. The provider is asked who this is.
            raise ImmediateHttpResponse(redirect("console:sso_start", connection.tenant_id))
        if user is None:
            request.session[PENDING_KEY] = [connection.id, *identity, timezone.now().timestamp()]
            raise ImmediateHttpResponse(redirect("console:sso_link"))
        sociallogin.user = user

    def on_authentication_error(
        self,
        request: HttpRequest,
        provider: Any,
        error: Any = None,
        exception: Exception | None = None,
        extra_context: Any = None,  # noqa: ARG002 the package passes it by name
    ) -> None:
        """Show what to do next. Raises ImmediateHttpResponse."""
        connection = enabled_connection(id=provider.app.provider_id)
        if isinstance(exception, SsoError):
            text = str(exception)
        elif isinstance(exception, requests.RequestException):
            text = "The identity provider does not respond. Try again in a few minutes."
        elif error == AuthError.CANCELLED:
            text = "The identity provider did not sign you in, because access was denied or cancelled there."
        elif exception is not None:
            text = "The provider did not accept the sign-in. Check the client secret and the redirect URI of the setup."
        elif request.GET.get("error"):
            text = f"The identity provider returned {request.GET['error'][:60]!r}. Show this to your administrator."
        else:
            text = "This sign-in has expired or was started in another browser. Start again."
        log.warning("single sign-on failed", connection=provider.app.provider_id, reason=text)
        raise ImmediateHttpResponse(refusal(request, connection, text))


class SsoAccountAdapter(AccountAdapter):
    """Accounts, whose sessions are confined if they begin by single sign-on."""

    def post_login(self, request: HttpRequest, user: Any, **kwargs: Any) -> HttpResponse:
        """Confine and bound the session, open the connection's tenant, and add an entry to the audit log.

        Called in the request that begins the session, also after a second factor.
        """
        sociallogin = (kwargs.get("signal_kwargs") or {}).get("sociallogin")
        if sociallogin is not None:
            request.session[_SESSION_KEY] = sociallogin.account.provider
            # A time, not a duration: a duration would begin again with each save of the session.
            request.session.set_expiry(_session_end(sociallogin))
            connection = enabled_connection(id=sociallogin.account.provider)
            if connection is not None:
                add_tenant(connection.tenant_id)
                choose_tenant(request, connection.tenant)
                note_sso_sign_in(connection=connection, user=user)
        return super().post_login(request, user, **kwargs)


def app_of(connection: SsoConnection) -> SocialApp:
    """Return a connection as allauth reads it."""
    if connection.protocol == SsoConnection.Protocol.SAML:
        return SocialApp(
            provider=SamlProvider.id,
            provider_id=connection.id,
            name=connection.tenant.name[:40],
            settings={
                "sso_url": connection.sso_url,
                "parties": parties_of(connection),
                "trusts_email": connection.trusts_email,
            },
        )
    return SocialApp(
        provider="openid_connect",
        provider_id=connection.id,
        name=connection.tenant.name[:40],
        client_id=connection.client_id,
        secret=client_secret_of(connection),
        settings={
            "tenant": connection.tenant_id,
            "server_url": connection.issuer,
            "redirect_uri": redirect_uri_of(connection.tenant),
            "oauth_pkce_enabled": True,
            "scope": ["openid", "email", "profile"],
        },
    )


def _session_end(sociallogin: Any) -> datetime:
    """Return the end of a session that begins now; a SAML provider may name an earlier one."""
    latest = timezone.now() + timedelta(seconds=SESSION_S)
    named = sociallogin.state.get("session_ends_at")
    return min(latest, datetime.fromtimestamp(named, UTC)) if named else latest


def _admit(connection: SsoConnection, identity: Identity) -> User | None:
    """Admit an identity, once more if another request has created its account meanwhile."""
    try:
        return admit_identity(connection=connection, identity=identity, now=timezone.now())
    except IntegrityError:
        return admit_identity(connection=connection, identity=identity, now=timezone.now())


def identity_of(sociallogin: Any) -> Identity:
    """Return the identity of a login. An address that the provider calls unverified is none."""
    address = next(iter(sociallogin.email_addresses), None)
    email = address.email.lower() if address is not None and address.email.isascii() else ""
    name = sociallogin.user.get_username() if sociallogin.user else ""
    # Letters of other alphabets can become a colleague's address in lower case, such as the sign of Kelvin a k.
    is_verified = address is not None and bool(email and address.verified)
    return Identity(sociallogin.account.uid, email, name, is_verified=is_verified)


def refusal(request: HttpRequest, connection: SsoConnection | None, text: str, status: int = 403) -> HttpResponse:
    """Return the page that says why nobody was signed in."""
    context = {"connection": connection, "why": text, "theme": theme_of(request)}
    return render(request, "sso/refused.html", context, status=status)
