"""How a new pipe's traffic is let in by shares of its keys, and the two ways in which a person steers it."""

from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from mgmt import access
from mgmt.api.ramp_shapes import AdmissionOut
from mgmt.api.schema import answers, operation
from mgmt.api.views.base import View
from mgmt.models import Admission
from mgmt.queries.places import held_before_steps
from mgmt.services import hold_admission, resume_admission


def answer_of(admission: Admission) -> Response:
    """The admission, and how much is held."""
    held = held_before_steps(pipe_id=admission.pipe_id)
    return Response(AdmissionOut({"row": admission, "held": held.count if held else 0}).data)


class AdmissionView(View):
    """One pipe's."""

    @operation("get_admission", responses=answers(200, AdmissionOut, "not-found"))
    def get(self, _request: Request, pipe: str) -> Response:
        """How far the pipe is let in. One that took everything from the beginning has no admission."""
        return answer_of(access.get_admission(self.user, pipe))


class HoldAdmissionView(View):
    """Holding."""

    @operation(
        "hold_admission",
        request=None,
        responses=answers(200, AdmissionOut, "role-too-low", "not-found", "admission-over"),
    )
    def post(self, _request: Request, pipe: str) -> Response:
        """Let no more in than now."""
        admission = access.get_admission(self.user, pipe, access.STEER_RAMP)
        hold_admission(admission=admission, by=self.user, now=timezone.now())
        return answer_of(admission)


class ResumeAdmissionView(View):
    """Resuming."""

    @operation(
        "resume_admission",
        request=None,
        responses=answers(200, AdmissionOut, "role-too-low", "not-found", "admission-over"),
    )
    def post(self, _request: Request, pipe: str) -> Response:
        """Go on from the share at which it is, also after it went back by itself."""
        admission = access.get_admission(self.user, pipe, access.STEER_RAMP)
        resume_admission(admission=admission, by=self.user, now=timezone.now())
        return answer_of(admission)
