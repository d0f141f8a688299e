"""Admission of a new pipe's keys: read, hold, resume."""

from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from mgmt.deliveries.queries.message_selection import held_before_steps
from mgmt.models import Admission
from mgmt.ramps.serializers import AdmissionOut
from mgmt.services import hold_admission, resume_admission
from mgmt.web import access
from mgmt.web.api_view import View
from mgmt.web.openapi import answers, operation


def answer_of(admission: Admission) -> Response:
    """Return the admission, with the number of messages held before the pipe's steps."""
    held = held_before_steps(pipe_id=admission.pipe_id)
    return Response(AdmissionOut({"row": admission, "held": held.count if held else 0}).data)


class AdmissionDetail(View):
    """Admission of one pipe."""

    @operation("get_admission", responses=answers(200, AdmissionOut, "not-found"))
    def get(self, _request: Request, pipe: str) -> Response:
        """Return a pipe's admission. A pipe that accepted all its keys from the start has none."""
        return answer_of(access.get_admission(self.user, pipe))


class HoldAdmissionView(View):
    """Hold of an admission."""

    @operation(
        "hold_admission",
        request=None,
        responses=answers(200, AdmissionOut, "role-too-low", "not-found", "admission-over"),
    )
    def post(self, _request: Request, pipe: str) -> Response:
        """Keep the admission at its current share."""
        admission = access.get_admission(self.user, pipe, access.STEER_RAMP)
        hold_admission(admission=admission, by=self.user, now=timezone.now())
        return answer_of(admission)


class ResumeAdmissionView(View):
    """Resumption of an admission."""

    @operation(
        "resume_admission",
        request=None,
        responses=answers(200, AdmissionOut, "role-too-low", "not-found", "admission-over"),
    )
    def post(self, _request: Request, pipe: str) -> Response:
        """Continue the admission from its current share, also after an automatic reduction."""
        admission = access.get_admission(self.user, pipe, access.STEER_RAMP)
        resume_admission(admission=admission, by=self.user, now=timezone.now())
        return answer_of(admission)
