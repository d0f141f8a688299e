"""Ramps: read, list processed units, hold, resume, roll back."""

from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.response import Response

from dataplane.ledger.bins import Bin
from mgmt.models import Ramp
from mgmt.ramps.queries import MOST_UNITS, bins_of, in_bin, shown, step_lines, taken_by
from mgmt.ramps.serializers import RampOut, RollBackIn, TakenOut
from mgmt.services import hold_ramp, resume_ramp, roll_back_ramp
from mgmt.web import access
from mgmt.web.api_view import View, body_of
from mgmt.web.openapi import answers, operation
from mgmt.web.pagination import refused


def answer_of(ramp: Ramp) -> Response:
    """Return the ramp with its steps."""
    waits_for = "" if ramp.ended_at else ramp.revision.state_reason
    steps = step_lines(ramp, timezone.now())
    return Response(RampOut({"row": ramp, "waits_for": waits_for, "steps": steps}).data)


class RampDetail(View):
    """One ramp."""

    @operation("get_ramp", responses=answers(200, RampOut, "not-found"))
    def get(self, _request: Request, pipe: str, number: int) -> Response:
        """Return a revision's ramp with its steps. The first revision of a pipe, and one without traffic, has none."""
        return answer_of(access.get_ramp(self.user, pipe, number))


class TakenView(View):
    """Units that a ramping revision processed."""

    @operation(
        "list_taken",
        parameters=[
            OpenApiParameter("bin", str, enum=[name.value for name in Bin], description="Only units in this bin.")
        ],
        responses=answers(200, TakenOut, "parameter-invalid", "not-found"),
    )
    def get(self, request: Request, pipe: str, number: int) -> Response:
        """List the units that the revision processed during its ramp, each with its current bin; the newest 200."""
        chosen = request.query_params.get("bin", "")
        if chosen and chosen not in list(Bin):
            raise refused("bin", f"needs one of {', '.join(Bin)}")
        units = taken_by(access.get_ramp(self.user, pipe, number))
        lines = shown(in_bin(units, chosen), MOST_UNITS)
        return Response(TakenOut({"bins": bins_of(units), "units": lines}).data)


class HoldRampView(View):
    """Hold of a ramp."""

    @operation("hold_ramp", request=None, responses=answers(200, RampOut, "role-too-low", "not-found", "ramp-over"))
    def post(self, _request: Request, pipe: str, number: int) -> Response:
        """Keep the ramp at its current share. It is still rolled back automatically if it fails."""
        ramp = access.get_ramp(self.user, pipe, number, access.STEER_RAMP)
        hold_ramp(ramp=ramp, by=self.user, now=timezone.now())
        return answer_of(ramp)


class ResumeRampView(View):
    """Resumption of a ramp."""

    @operation("resume_ramp", request=None, responses=answers(200, RampOut, "role-too-low", "not-found", "ramp-over"))
    def post(self, _request: Request, pipe: str, number: int) -> Response:
        """Continue a held ramp."""
        ramp = access.get_ramp(self.user, pipe, number, access.STEER_RAMP)
        resume_ramp(ramp=ramp, by=self.user, now=timezone.now())
        return answer_of(ramp)


class RollBackRampView(View):
    """Rollback of a ramp."""

    @operation(
        "roll_back_ramp",
        request=RollBackIn,
        responses=answers(200, RampOut, "invalid", "role-too-low", "not-found", "ramp-over"),
    )
    def post(self, request: Request, pipe: str, number: int) -> Response:
        """Return all keys to the stable revision, in any state of the cell. It also runs the other's messages."""
        ramp = access.get_ramp(self.user, pipe, number, access.STEER_RAMP)
        body = body_of(request, RollBackIn)
        roll_back_ramp(ramp=ramp, reason=body["reason"], by=self.user, now=timezone.now())
        return answer_of(ramp)
