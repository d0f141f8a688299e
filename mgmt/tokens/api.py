"""API tokens and service accounts of a tenant in Penstock's API."""

from django.urls import reverse
from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from mgmt.errors import InvalidValue
from mgmt.services import (
    change_service_account,
    create_service_account,
    create_token,
    remove_service_account,
    revoke_token,
)
from mgmt.tokens.queries import service_accounts_of
from mgmt.tokens.serializers import (
    TOKENS_EXAMPLE,
    NewTokenOut,
    ServiceAccountChangeIn,
    ServiceAccountIn,
    ServiceAccountOut,
    TokenIn,
    TokenOut,
    TokenPageOut,
)
from mgmt.web import access
from mgmt.web.api_view import View, body_of
from mgmt.web.openapi import PAGE_PARAMETERS, answers, example, operation
from mgmt.web.pagination import KeysetPage, page_of


class TokensView(View):
    """API tokens of a tenant."""

    @operation(
        "list_tokens",
        parameters=PAGE_PARAMETERS,
        responses=answers(200, TokenPageOut, "not-found"),
        examples=[example(TOKENS_EXAMPLE)],
    )
    def get(self, request: Request, tenant: str) -> Response:
        """List your API tokens of a tenant that are not revoked, newest first; as an owner, those of all users."""
        rows = access.tokens_of(self.user, access.get_tenant(self.user, tenant)).filter(revoked_at=None)
        found, paginator = page_of(rows, request, KeysetPage())
        return paginator.get_paginated_response(TokenOut(found, many=True).data)

    @operation(
        "create_token",
        request=TokenIn,
        responses=answers(
            201, NewTokenOut, "invalid", "role-too-low", "not-found", "limit-reached", "body-too-large", "media-type"
        ),
    )
    def post(self, request: Request, tenant: str) -> Response:
        """Create an API token. The response contains its text, which cannot be read again.

        Each member creates tokens up to their own role. A request that is itself authenticated by a token needs the
        scope `admin`.
        """
        row = access.get_tenant(self.user, tenant, access.need_to_create_token(self.user))
        body = body_of(request, TokenIn)
        user = self.user
        if body["service_account"] is not None:
            user = access.get_service_account(user, tenant, body["service_account"], access.MANAGE_TOKENS).user
        pipe = access.get_pipe(self.user, body["pipe"]) if body["pipe"] is not None else None
        token, text = create_token(
            tenant=row,
            user=user,
            by=self.user,
            name=body["name"],
            scope=body["scope"],
            pipe=pipe,
            days=body["expires_in_days"],
            now=timezone.now(),
        )
        headers = {"Cache-Control": "no-store", "Location": reverse("api:token", args=[row.id, token.id])}
        return Response({**TokenOut(token).data, "token": text}, status=201, headers=headers)


class TokenView(View):
    """One API token."""

    @operation("get_token", responses=answers(200, TokenOut, "not-found"))
    def get(self, _request: Request, tenant: str, token: str) -> Response:
        """Return one of your API tokens; as an owner, that of any user. A revoked one is returned, too."""
        return Response(TokenOut(access.get_token(self.user, tenant, token)).data)

    @operation("revoke_token", responses=answers(204, None, "role-too-low", "not-found"))
    def delete(self, _request: Request, tenant: str, token: str) -> Response:
        """Revoke an API token for good: your own, or as an owner any. Repeating the request changes nothing.

        A request that is itself authenticated by a token may revoke this token; for others it needs the scope `admin`.
        """
        row = access.get_token_to_revoke(self.user, tenant, token)
        revoke_token(token=row, by=self.user, now=timezone.now())
        return Response(status=204)


class ServiceAccountsView(View):
    """Service accounts of a tenant. There are at most 50, and so no pages."""

    @operation("list_service_accounts", responses=answers(200, ServiceAccountOut(many=True), "not-found"))
    def get(self, _request: Request, tenant: str) -> Response:
        """List a tenant's service accounts with their roles, by name. Each member may read the list."""
        rows = service_accounts_of(access.get_tenant(self.user, tenant).id)
        return Response(ServiceAccountOut(rows, many=True).data)

    @operation(
        "create_service_account",
        request=ServiceAccountIn,
        responses=answers(
            201,
            ServiceAccountOut,
            "invalid",
            "role-too-low",
            "not-found",
            "name-taken",
            "limit-reached",
            "body-too-large",
            "media-type",
        ),
    )
    def post(self, request: Request, tenant: str) -> Response:
        """Create a service account: a user for a program, which never signs in. Then create a token of it."""
        row = access.get_tenant(self.user, tenant, access.MANAGE_TOKENS)
        body = body_of(request, ServiceAccountIn)
        account = create_service_account(
            tenant=row, name=body["name"], role=body["role"], by=self.user, now=timezone.now()
        )
        location = reverse("api:service-account", args=[row.id, account.id])
        answer = ServiceAccountOut(service_accounts_of(row.id).get(id=account.id)).data
        return Response(answer, status=201, headers={"Location": location})


class ServiceAccountView(View):
    """One service account."""

    @operation("get_service_account", responses=answers(200, ServiceAccountOut, "not-found"))
    def get(self, _request: Request, tenant: str, account: str) -> Response:
        """Return a service account."""
        return Response(ServiceAccountOut(access.get_service_account(self.user, tenant, account)).data)

    @operation(
        "change_service_account",
        request=ServiceAccountChangeIn,
        responses=answers(
            200, ServiceAccountOut, "invalid", "role-too-low", "not-found", "body-too-large", "media-type"
        ),
    )
    def patch(self, request: Request, tenant: str, account: str) -> Response:
        """Set the role of a service account, or disable it: its tokens are refused while `is_active` is false."""
        row = access.get_service_account(self.user, tenant, account, access.MANAGE_TOKENS)
        body = body_of(request, ServiceAccountChangeIn)
        if not body:
            raise InvalidValue("role", "needs this field or is_active")
        change_service_account(account=row, by=self.user, **body)
        return Response(ServiceAccountOut(access.get_service_account(self.user, tenant, account)).data)

    @operation("remove_service_account", responses=answers(204, None, "role-too-low", "not-found"))
    def delete(self, _request: Request, tenant: str, account: str) -> Response:
        """Remove a service account for good and revoke its tokens. What it has published keeps its name."""
        row = access.get_service_account(self.user, tenant, account, access.MANAGE_TOKENS)
        remove_service_account(account=row, by=self.user, now=timezone.now())
        return Response(status=204)
