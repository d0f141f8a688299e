"""Pausing and resuming pipes and destinations; the secrets of their auth."""

from rest_framework.request import Request
from rest_framework.response import Response

from mgmt import access
from mgmt.api.delivery_shapes import StandingOut
from mgmt.api.schema import answers, operation
from mgmt.api.shapes import CredentialIn, DestinationOut, PipeOut
from mgmt.api.views.base import View, body_of
from mgmt.api.views.pipes import answer_of
from mgmt.queries.delivery import standing_of, standings
from mgmt.services import (
    clear_credential,
    pause_destination,
    pause_pipe,
    resume_destination,
    resume_pipe,
    set_credential,
)


class PausePipeView(View):
    """Pausing."""

    @operation("pause_pipe", request=None, responses=answers(200, PipeOut, "role-too-low", "not-found", "pipe-closed"))
    def post(self, _request: Request, pipe: str) -> Response:
        """Go on accepting, hold everything. Pausing a paused pipe changes nothing."""
        row = access.get_pipe(self.user, pipe, access.PAUSE)
        pause_pipe(pipe=row)
        return Response(answer_of(self.user, row))


class ResumePipeView(View):
    """Resuming."""

    @operation("resume_pipe", request=None, responses=answers(200, PipeOut, "role-too-low", "not-found", "pipe-closed"))
    def post(self, _request: Request, pipe: str) -> Response:
        """Deliver again; what was held follows by itself, in order."""
        row = access.get_pipe(self.user, pipe, access.PAUSE)
        resume_pipe(pipe=row)
        return Response(answer_of(self.user, row))


class StandingsView(View):
    """What waits at a pipe's destinations."""

    @operation("list_standings", responses=answers(200, StandingOut(many=True), "not-found"))
    def get(self, _request: Request, pipe: str) -> Response:
        """Each destination of the pipe: whether it is sent anything, what is held, what is dead, what is moving."""
        return Response(StandingOut(standings(pipe=access.get_pipe(self.user, pipe)), many=True).data)


class PauseDestinationView(View):
    """Pausing one destination."""

    @operation(
        "pause_destination",
        request=None,
        responses=answers(200, StandingOut, "role-too-low", "not-found", "destination-removed"),
    )
    def post(self, _request: Request, pipe: str, name: str) -> Response:
        """Send it nothing more; its messages are held. Pausing a paused one changes nothing."""
        row = access.get_destination(self.user, pipe, name, access.PAUSE)
        pause_destination(destination=row, by=self.user)
        return Response(StandingOut(standing_of(destination=row)).data)


class ResumeDestinationView(View):
    """Resuming one destination."""

    @operation(
        "resume_destination",
        request=None,
        responses=answers(200, StandingOut, "role-too-low", "not-found", "destination-removed"),
    )
    def post(self, _request: Request, pipe: str, name: str) -> Response:
        """Send to it again, paused or suspended; what is held follows by itself, in order."""
        row = access.get_destination(self.user, pipe, name, access.PAUSE)
        resume_destination(destination=row, by=self.user)
        return Response(StandingOut(standing_of(destination=row)).data)


class CredentialView(View):
    """The secret of a destination's auth."""

    @operation(
        "set_credential",
        request=CredentialIn,
        responses=answers(
            200,
            DestinationOut,
            "invalid",
            "role-too-low",
            "not-found",
            "destination-removed",
            "body-too-large",
            "media-type",
        ),
    )
    def put(self, request: Request, pipe: str, name: str) -> Response:
        """Store it, encrypted. Nothing shows it again."""
        row = access.get_destination(self.user, pipe, name, access.SET_CREDENTIAL)
        set_credential(destination=row, credential=body_of(request, CredentialIn))
        return Response(DestinationOut(row).data)

    @operation("clear_credential", responses=answers(200, DestinationOut, "role-too-low", "not-found"))
    def delete(self, _request: Request, pipe: str, name: str) -> Response:
        """Forget it. A destination whose auth needs one gets nothing until there is one again."""
        row = access.get_destination(self.user, pipe, name, access.SET_CREDENTIAL)
        clear_credential(destination=row)
        return Response(DestinationOut(row).data)
