"""API of the single sign-on of a tenant. Owners only: the settings decide who becomes a member."""

from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from mgmt.models import SsoConnection, User
from mgmt.services import (
    SsoSettings,
    add_domain,
    remove_connection,
    remove_domain,
    save_connection,
    set_require_sso,
    test_connection,
    verify_domain,
)
from mgmt.sso.queries import domains_of
from mgmt.sso.serializers import RequireSsoIn, SsoDomainIn, SsoDomainOut, SsoIn, SsoOut
from mgmt.web import access
from mgmt.web.api_view import View, body_of
from mgmt.web.openapi import answers, operation


class SingleSignOnView(View):
    """The identity provider of a tenant."""

    @operation("get_single_sign_on", responses=answers(200, SsoOut, "role-too-low", "not-found"))
    def get(self, _request: Request, tenant: str) -> Response:
        """Return the settings of single sign-on; 404 if there are none."""
        return Response(SsoOut(_connection(self.user, tenant)).data)

    @operation(
        "set_single_sign_on",
        request=SsoIn,
        responses=answers(200, SsoOut, "invalid", "role-too-low", "not-found", "sso-failed"),
    )
    def put(self, request: Request, tenant: str) -> Response:
        """Create or replace the settings. Another issuer ends identities, sessions and tokens of the earlier one.

        With SAML, another protocol or subject attribute does so, too.
        Refused if single sign-on would end and no owner could sign in without it.
        """
        row = access.get_tenant(self.user, tenant, access.MANAGE_SSO)
        values = SsoSettings(**body_of(request, SsoIn))
        connection = save_connection(tenant=row, values=values, by=self.user, now=timezone.now())
        return Response(SsoOut(connection).data)

    @operation("remove_single_sign_on", responses=answers(204, None, "role-too-low", "not-found", "sso-failed"))
    def delete(self, _request: Request, tenant: str) -> Response:
        """Remove single sign-on with its identities. Its sessions and their tokens reach nothing any more.

        Refused if no owner could sign in without it.
        """
        remove_connection(connection=_connection(self.user, tenant), by=self.user)
        return Response(status=204)


class SingleSignOnTestView(View):
    """Test of an identity provider."""

    @operation(
        "test_single_sign_on",
        idempotency_key=False,  # it stores nothing
        request=SsoIn,
        responses=answers(204, None, "invalid", "role-too-low", "not-found", "sso-failed"),
    )
    def post(self, request: Request, tenant: str) -> Response:
        """Check that the provider responds, publishes keys and accepts the client. Stores nothing.

        With SAML: that its metadata can be used.
        """
        row = access.get_tenant(self.user, tenant, access.MANAGE_SSO)
        test_connection(tenant=row, values=SsoSettings(**body_of(request, SsoIn)), now=timezone.now())
        return Response(status=204)


class RequireSingleSignOnView(View):
    """Requirement of single sign-on."""

    @operation(
        "require_single_sign_on",
        request=RequireSsoIn,
        responses=answers(200, SsoOut, "invalid", "role-too-low", "not-found", "sso-failed", "second-factor-missing"),
    )
    def put(self, request: Request, tenant: str) -> Response:
        """Require single sign-on of the members that are not owners, or no longer. API tokens keep working."""
        connection = _connection(self.user, tenant)
        required = body_of(request, RequireSsoIn)["require_sso"]
        set_require_sso(tenant=connection.tenant, required=required, by=self.user)
        return Response(SsoOut(connection).data)


class SsoDomainsView(View):
    """E-mail domains of a tenant. There are at most 20, and so no pages."""

    @operation("list_sso_domains", responses=answers(200, SsoDomainOut(many=True), "role-too-low", "not-found"))
    def get(self, _request: Request, tenant: str) -> Response:
        """List the e-mail domains whose people may sign in, by name; none: each address may."""
        row = access.get_tenant(self.user, tenant, access.MANAGE_SSO)
        return Response(SsoDomainOut(domains_of(row.id), many=True).data)

    @operation(
        "add_sso_domain",
        request=SsoDomainIn,
        responses=answers(201, SsoDomainOut, "invalid", "role-too-low", "not-found", "name-taken", "limit-reached"),
    )
    def post(self, request: Request, tenant: str) -> Response:
        """Add an e-mail domain. Create its DNS record, then verify it."""
        row = access.get_tenant(self.user, tenant, access.MANAGE_SSO)
        domain = add_domain(tenant=row, domain=body_of(request, SsoDomainIn)["domain"], by=self.user)
        return Response(SsoDomainOut(domain).data, status=201)


class SsoDomainView(View):
    """One e-mail domain of a tenant."""

    @operation("remove_sso_domain", responses=answers(204, None, "role-too-low", "not-found"))
    def delete(self, _request: Request, tenant: str, domain: str) -> Response:
        """Remove an e-mail domain."""
        remove_domain(domain=access.get_sso_domain(self.user, tenant, domain, access.MANAGE_SSO), by=self.user)
        return Response(status=204)


class VerifySsoDomainView(View):
    """Verification of an e-mail domain."""

    @operation(
        "verify_sso_domain",
        request=None,
        responses=answers(200, SsoDomainOut, "role-too-low", "not-found", "domain-not-verified", "sso-failed"),
    )
    def post(self, _request: Request, tenant: str, domain: str) -> Response:
        """Look up the domain's DNS record. Repeating the request changes nothing."""
        row = access.get_sso_domain(self.user, tenant, domain, access.MANAGE_SSO)
        verify_domain(domain=row, by=self.user, now=timezone.now())
        return Response(SsoDomainOut(row).data)


def _connection(user: User, tenant: str) -> SsoConnection:
    return access.get_sso_connection(user, tenant, access.MANAGE_SSO)
