"""The signed-in user, members and invitations, the meanings of error codes, and the OpenAPI document."""

from functools import cache

from django.http import HttpResponse
from django.utils import timezone
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.views import SpectacularAPIView
from rest_framework.exceptions import NotFound
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response

from mgmt.services import change_role, invite_member, remove_member, resend_invitation, revoke_invitation
from mgmt.tenancy.queries import members_of, open_invitations
from mgmt.tenancy.serializers import (
    MEMBERS_EXAMPLE,
    InvitationIn,
    InvitationOut,
    MemberOut,
    MemberPageOut,
    MeOut,
    RoleIn,
)
from mgmt.web import access
from mgmt.web.api_view import StrictView, View, body_of
from mgmt.web.openapi import PAGE_PARAMETERS, answers, example, operation
from mgmt.web.pagination import NumberPage, page_of
from mgmt.web.problems import PROBLEMS
from mgmt.web.serializers import ProblemPageOut


class MeView(View):
    """The signed-in user."""

    @operation("get_me", responses=answers(200, MeOut))
    def get(self, _request: Request) -> Response:
        """Return your user name, your tenants and your role in each; for a request with an API token, also the token.

        `tenants` then has the token's tenant only, with the role that the token gives.
        """
        body = {"username": self.user.username, "tenants": access.memberships_of(self.user), "token": self.request.auth}
        return Response(MeOut(body).data)


class MembersView(View):
    """Members of a tenant."""

    @operation(
        "list_members",
        parameters=PAGE_PARAMETERS,
        responses=answers(200, MemberPageOut, "not-found"),
        examples=[example(MEMBERS_EXAMPLE)],
    )
    def get(self, request: Request, tenant: str) -> Response:
        """List a tenant's members with their roles, newest membership first. Each member may read the list.

        Service accounts have their own list.
        """
        members = members_of(access.get_tenant(self.user, tenant).id)
        rows, paginator = page_of(members, request, NumberPage())
        return paginator.get_paginated_response(MemberOut(rows, many=True).data)


class MemberView(View):
    """One member of a tenant."""

    @operation(
        "change_member_role",
        request=RoleIn,
        responses=answers(200, MemberOut, "invalid", "role-too-low", "not-found", "last-owner"),
    )
    def patch(self, request: Request, tenant: str, username: str) -> Response:
        """Change the role of a member. The last owner who can sign in keeps their role."""
        row = access.get_member(self.user, tenant, username, access.MANAGE_MEMBERS)
        change_role(membership=row, role=body_of(request, RoleIn)["role"], by=self.user)
        return Response(MemberOut(row).data)

    @operation("remove_member", responses=answers(204, None, "role-too-low", "not-found", "last-owner"))
    def delete(self, _request: Request, tenant: str, username: str) -> Response:
        """Remove a member; with your own user name, leave the tenant. It keeps an owner who can sign in."""
        leaves = username == self.user.get_username() and self.user.grant is None  # not by token, of any scope
        row = access.get_member(self.user, tenant, username, access.READ if leaves else access.MANAGE_MEMBERS)
        remove_member(membership=row, by=self.user)
        return Response(status=204)


class InvitationsView(View):
    """Pending invitations of a tenant. There are at most 100, and so no pages."""

    @operation("list_invitations", responses=answers(200, InvitationOut(many=True), "not-found"))
    def get(self, _request: Request, tenant: str) -> Response:
        """List the invitations that were neither accepted nor revoked, newest first, also expired ones."""
        rows = open_invitations(access.get_tenant(self.user, tenant).id)
        return Response(InvitationOut(rows, many=True).data)

    @operation(
        "invite_member",
        idempotency_key=False,  # the e-mail is sent after the commit, not before
        request=InvitationIn,
        responses=answers(
            201,
            InvitationOut,
            "invalid",
            "role-too-low",
            "not-found",
            "already-member",
            "name-taken",
            "limit-reached",
            "too-many-invitations",
        ),
    )
    def post(self, request: Request, tenant: str) -> Response:
        """Invite a person by e-mail. The link in it is valid for 7 days; `mail_error` says if it was not sent."""
        row = access.get_tenant(self.user, tenant, access.MANAGE_MEMBERS)
        body = body_of(request, InvitationIn)
        invitation = invite_member(tenant=row, email=body["email"], role=body["role"], by=self.user, now=timezone.now())
        return Response(InvitationOut(invitation).data, status=201)


class InvitationView(View):
    """One invitation."""

    @operation("revoke_invitation", responses=answers(204, None, "role-too-low", "not-found"))
    def delete(self, _request: Request, tenant: str, invitation: str) -> Response:
        """Revoke an invitation. Repeating the request changes nothing."""
        row = access.get_invitation(self.user, tenant, invitation, access.MANAGE_MEMBERS)
        revoke_invitation(invitation=row, by=self.user, now=timezone.now())
        return Response(status=204)


class ResendInvitationView(View):
    """Further e-mail of an invitation."""

    @operation(
        "resend_invitation",
        idempotency_key=False,  # the e-mail is sent after the commit, not before
        request=None,
        responses=answers(
            200, InvitationOut, "role-too-low", "not-found", "invitation-invalid", "too-many-invitations"
        ),
    )
    def post(self, _request: Request, tenant: str, invitation: str) -> Response:
        """Send a new link, valid for 7 days from now. Earlier links of the invitation no longer work."""
        row = access.get_invitation(self.user, tenant, invitation, access.MANAGE_MEMBERS)
        sent = resend_invitation(invitation=row, by=self.user, now=timezone.now())
        return Response(InvitationOut(sent).data)


class ProblemView(StrictView):
    """Help on an error code of the API, for programs; public. The page for people is that of a problem's `type`."""

    permission_classes = [AllowAny]
    throttle_classes = []  # the response is a constant

    @operation("get_problem", auth=[], responses=answers(200, ProblemPageOut, "not-found"))
    def get(self, _request: Request, code: str) -> Response:
        """Return the meaning of an error code, and how to resolve it."""
        if code not in PROBLEMS:
            raise NotFound
        problem = PROBLEMS[code]
        body = {"code": code, "status": problem.status, "title": problem.title, "meaning": problem.meaning}
        return Response(ProblemPageOut(body).data)


class DocumentView(SpectacularAPIView):  # type: ignore[misc]  # the package is not followed by mypy
    """The OpenAPI document; public. It takes half a second of CPU time and is therefore built once per process."""

    def _get_schema_response(self, request: Request) -> HttpResponse:
        kind = request.accepted_renderer.media_type
        return HttpResponse(_document(kind), content_type=kind)


@cache
def _document(media_type: str) -> bytes:
    renderer = next(one for one in SpectacularAPIView.renderer_classes if one.media_type == media_type)
    text: bytes = renderer().render(SchemaGenerator().get_schema(request=None, public=True), renderer_context={})
    return text
