"""The signed-in user, the members of a tenant, the meanings of error codes, and the OpenAPI document."""

from functools import cache

from django.http import HttpResponse
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.views import SpectacularAPIView
from rest_framework.exceptions import NotFound
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response

from mgmt.tenancy.serializers import MEMBERS_EXAMPLE, MemberOut, MemberPageOut, MeOut
from mgmt.web import access
from mgmt.web.api_view import StrictView, View
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
        members = access.get_tenant(self.user, tenant).memberships.filter(user__is_service_account=False)
        members = members.select_related("user")
        rows, paginator = page_of(members, request, NumberPage())
        return paginator.get_paginated_response(MemberOut(rows, many=True).data)


class ProblemView(StrictView):
    """Help page of an error code, the target of a problem's `type`; public."""

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
