"""Pauses of pipes and destinations, and the credentials of destinations."""

from rest_framework.request import Request
from rest_framework.response import Response

from mgmt.deliveries.queries.delivery import delivery_state, delivery_states
from mgmt.deliveries.serializers import StandingOut
from mgmt.pipes.api.pipes import answer_of
from mgmt.pipes.serializers import CredentialIn, DestinationOut, PipeOut, ResumeIn
from mgmt.services import (
    clear_credential,
    pause_destination,
    pause_pipe,
    resume_destination,
    resume_pipe,
    set_credential,
)
from mgmt.web import access
from mgmt.web.api_view import View, body_of
from mgmt.web.openapi import answers, operation


class PausePipeView(View):
    """Pause of a pipe."""

    @operation("pause_pipe", request=None, responses=answers(200, PipeOut, "role-too-low", "not-found", "pipe-closed"))
    def post(self, _request: Request, pipe: str) -> Response:
        """Pause a pipe. It still accepts events and holds all messages. Pausing a paused pipe changes nothing."""
        row = access.get_pipe(self.user, pipe, access.PAUSE)
        pause_pipe(pipe=row, by=self.user)
        return Response(answer_of(self.user, row))


class ResumePipeView(View):
    """Resumption of a pipe."""

    @operation(
        "resume_pipe",
        request=ResumeIn,
        responses=answers(
            200,
            PipeOut,
            "invalid",
            "role-too-low",
            "not-found",
            "pipe-closed",
            "fix-not-live",
            "alert-not-open",
            "nothing-to-probe",
            "body-too-large",
            "media-type",
        ),
    )
    def post(self, request: Request, pipe: str) -> Response:
        """Resume a pipe. Held messages are sent automatically, in order.

        A pipe that Penstock paused because its steps fail (`dead-rate`) needs a corrected revision that is live. It
        stays paused while one held message runs through the steps, and resumes automatically if that passes.
        """
        row = access.get_pipe(self.user, pipe, access.PAUSE)
        resume_pipe(pipe=row, by=self.user, without_fix=body_of(request, ResumeIn)["without_fix"])
        row.refresh_from_db()
        return Response(answer_of(self.user, row))


class StandingsView(View):
    """Delivery states of a pipe's destinations."""

    @operation("list_standings", responses=answers(200, StandingOut(many=True), "not-found"))
    def get(self, _request: Request, pipe: str) -> Response:
        """List the pipe's destinations, each with its held messages, dead letters and moves in progress."""
        return Response(StandingOut(delivery_states(pipe=access.get_pipe(self.user, pipe)), many=True).data)


class PauseDestinationView(View):
    """Pause of a destination."""

    @operation(
        "pause_destination",
        request=None,
        responses=answers(200, StandingOut, "role-too-low", "not-found", "destination-removed"),
    )
    def post(self, _request: Request, pipe: str, name: str) -> Response:
        """Pause a destination. Its messages are held. Pausing a paused destination changes nothing."""
        row = access.get_destination(self.user, pipe, name, access.PAUSE)
        pause_destination(destination=row, by=self.user)
        return Response(StandingOut(delivery_state(destination=row)).data)


class ResumeDestinationView(View):
    """Resumption of a destination."""

    @operation(
        "resume_destination",
        request=None,
        responses=answers(200, StandingOut, "role-too-low", "not-found", "destination-removed"),
    )
    def post(self, _request: Request, pipe: str, name: str) -> Response:
        """Resume a paused or suspended destination. Held messages are sent automatically, in order."""
        row = access.get_destination(self.user, pipe, name, access.PAUSE)
        resume_destination(destination=row, by=self.user)
        return Response(StandingOut(delivery_state(destination=row)).data)


class CredentialView(View):
    """Credential of a destination."""

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
        """Store the credential, encrypted. It cannot be read again."""
        row = access.get_destination(self.user, pipe, name, access.SET_CREDENTIAL)
        set_credential(destination=row, credential=body_of(request, CredentialIn), by=self.user)
        return Response(DestinationOut(row).data)

    @operation("clear_credential", responses=answers(200, DestinationOut, "role-too-low", "not-found"))
    def delete(self, _request: Request, pipe: str, name: str) -> Response:
        """Delete the credential. A destination that needs one gets no messages until a new one is set."""
        row = access.get_destination(self.user, pipe, name, access.SET_CREDENTIAL)
        clear_credential(destination=row, by=self.user)
        return Response(DestinationOut(row).data)
