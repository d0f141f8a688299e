"""Ramps: how one goes, what its revision took, and the three ways in which a person steers it."""

from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.response import Response

from dataplane.ledger.bins import Bin
from mgmt import access
from mgmt.api.paging import refused
from mgmt.api.ramp_shapes import RampOut, RollBackIn, TakenOut
from mgmt.api.schema import answers, operation
from mgmt.api.views.base import View, body_of
from mgmt.models import Ramp
from mgmt.queries.ramps import MOST_UNITS, bins_of, in_bin, shown, step_lines, taken_by
from mgmt.services import hold_ramp, resume_ramp, roll_back_ramp


def answer_of(ramp: Ramp) -> Response:
    """The ramp with its steps."""
    waits_for = "" if ramp.ended_at else ramp.revision.state_reason
    steps = step_lines(ramp, timezone.now())
    return Response(RampOut({"row": ramp, "waits_for": waits_for, "steps": steps}).data)


class RampView(View):
    """One ramp."""

    @operation("get_ramp", responses=answers(200, RampOut, "not-found"))
    def get(self, _request: Request, pipe: str, number: int) -> Response:
        """How a revision came live, step by step. A pipe's first revision had no ramp, nor one without traffic."""
        return answer_of(access.get_ramp(self.user, pipe, number))


class TakenView(View):
    """What a ramping revision took."""

    @operation(
        "list_taken",
        parameters=[
            OpenApiParameter("bin", str, enum=[name.value for name in Bin], description="Units in this bin alone.")
        ],
        responses=answers(200, TakenOut, "parameter-invalid", "not-found"),
    )
    def get(self, request: Request, pipe: str, number: int) -> Response:
        """Every message that the revision took while it ramped, by id, and where each is now; the newest 200."""
        chosen = request.query_params.get("bin", "")
        if chosen and chosen not in list(Bin):
            raise refused("bin", f"needs one of {', '.join(Bin)}")
        units = taken_by(access.get_ramp(self.user, pipe, number))
        lines = shown(in_bin(units, chosen), MOST_UNITS)
        return Response(TakenOut({"bins": bins_of(units), "units": lines}).data)


class HoldRampView(View):
    """Holding."""

    @operation("hold_ramp", request=None, responses=answers(200, RampOut, "role-too-low", "not-found", "ramp-over"))
    def post(self, _request: Request, pipe: str, number: int) -> Response:
        """Let the share grow no further. It still goes back by itself if it fails."""
        ramp = access.get_ramp(self.user, pipe, number, access.STEER_RAMP)
        hold_ramp(ramp=ramp, by=self.user, now=timezone.now())
        return answer_of(ramp)


class ResumeRampView(View):
    """Resuming."""

    @operation("resume_ramp", request=None, responses=answers(200, RampOut, "role-too-low", "not-found", "ramp-over"))
    def post(self, _request: Request, pipe: str, number: int) -> Response:
        """Let a held ramp go on."""
        ramp = access.get_ramp(self.user, pipe, number, access.STEER_RAMP)
        resume_ramp(ramp=ramp, by=self.user, now=timezone.now())
        return answer_of(ramp)


class RollBackRampView(View):
    """Rolling back."""

    @operation(
        "roll_back_ramp",
        request=RollBackIn,
        responses=answers(200, RampOut, "invalid", "role-too-low", "not-found", "ramp-over"),
    )
    def post(self, request: Request, pipe: str, number: int) -> Response:
        """All keys back to the stable revision, however the cell is; it also runs what the other was given."""
        ramp = access.get_ramp(self.user, pipe, number, access.STEER_RAMP)
        body = body_of(request, RollBackIn)
        roll_back_ramp(ramp=ramp, reason=body["reason"], by=self.user, now=timezone.now())
        return answer_of(ramp)
