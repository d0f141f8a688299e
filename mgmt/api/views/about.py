"""The user, what error codes mean, and the OpenAPI document."""

from functools import cache

from django.http import HttpResponse
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.views import SpectacularAPIView
from rest_framework.exceptions import NotFound
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from mgmt.api.problems import PROBLEMS
from mgmt.api.schema import answers, operation
from mgmt.api.shapes import MeOut, ProblemPageOut
from mgmt.api.views.base import View


class MeView(View):
    """The signed-in user."""

    @operation("get_me", responses=answers(200, MeOut))
    def get(self, _request: Request) -> Response:
        """Your name, your tenants and your role in each."""
        rows = self.user.memberships.select_related("tenant").order_by("tenant__name", "id")
        return Response(MeOut({"username": self.user.username, "tenants": rows}).data)


class ProblemView(APIView):
    """What a problem's `type` points at: for everybody."""

    permission_classes = [AllowAny]
    throttle_classes = []  # a constant

    @operation("get_problem", auth=[], responses=answers(200, ProblemPageOut, "not-found"))
    def get(self, _request: Request, code: str) -> Response:
        """What an error code means, and what to do about it."""
        if code not in PROBLEMS:
            raise NotFound
        problem = PROBLEMS[code]
        body = {"code": code, "status": problem.status, "title": problem.title, "meaning": problem.meaning}
        return Response(ProblemPageOut(body).data)


class DocumentView(SpectacularAPIView):  # type: ignore[misc]  # the package is not followed by mypy
    """The OpenAPI document. Everybody may ask for it, and making it takes half a second of CPU time: once a process."""

    def _get_schema_response(self, request: Request) -> HttpResponse:
        kind = request.accepted_renderer.media_type
        return HttpResponse(_document(kind), content_type=kind)


@cache
def _document(media_type: str) -> bytes:
    renderer = next(one for one in SpectacularAPIView.renderer_classes if one.media_type == media_type)
    text: bytes = renderer().render(SchemaGenerator().get_schema(request=None, public=True), renderer_context={})
    return text
