"""The user, and what error codes mean."""

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

    @operation("get_problem", auth=[], responses=answers(200, ProblemPageOut, "not-found"))
    def get(self, _request: Request, code: str) -> Response:
        """What an error code means, and what to do about it."""
        if code not in PROBLEMS:
            raise NotFound
        problem = PROBLEMS[code]
        body = {"code": code, "status": problem.status, "title": problem.title, "meaning": problem.meaning}
        return Response(ProblemPageOut(body).data)
