"""Pipes: list, create, read, rename, close, reopen."""

from django.db.models import OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.urls import reverse
from rest_framework.request import Request
from rest_framework.response import Response

from dataplane.names import ALL_KEYS_PERCENT
from mgmt.models import Pipe, PipeRevision, User
from mgmt.pipes.serializers import PipeChangeIn, PipeIn, PipeOut, PipePageOut
from mgmt.services import InvalidValue, close_pipe, create_pipe, rename_pipe, reopen_pipe, set_loss_threshold
from mgmt.web import access
from mgmt.web.api_view import View, body_of, tenant_for
from mgmt.web.openapi import LOCATION, PAGE_PARAMETERS, answers, operation
from mgmt.web.pagination import KeysetPage, page_of


class PipesView(View):
    """All pipes of the user's tenants."""

    @operation(
        "list_pipes",
        parameters=PAGE_PARAMETERS,
        responses=answers(200, PipePageOut, "parameter-invalid"),
    )
    def get(self, request: Request) -> Response:
        """List the pipes of all your tenants, newest first."""
        rows, paginator = page_of(_shown(self.user), request, KeysetPage())
        return paginator.get_paginated_response(PipeOut(rows, many=True).data)

    @operation(
        "create_pipe",
        parameters=[LOCATION],
        request=PipeIn,
        responses=answers(
            201,
            PipeOut,
            "invalid",
            "role-too-low",
            "not-found",
            "name-taken",
            "quota-exceeded",
            "body-too-large",
            "media-type",
            "spec-invalid",
        ),
    )
    def post(self, request: Request) -> Response:
        """Create a pipe with its first revision. It accepts events once the revision is live."""
        body = body_of(request, PipeIn)
        tenant = tenant_for(self.user, body.get("tenant"), access.CREATE_PIPE)
        pipe = create_pipe(
            tenant=tenant,
            name=body["name"],
            spec=body["spec"],
            author=self.user,
            expected_per_s=body["expected_per_s"],
        )
        location = reverse("api:pipe", args=[pipe.id])
        return Response(answer_of(self.user, pipe), status=201, headers={"Location": location})


class PipeDetail(View):
    """One pipe."""

    @operation("get_pipe", responses=answers(200, PipeOut, "not-found"))
    def get(self, _request: Request, pipe: str) -> Response:
        """Return a pipe."""
        return Response(answer_of(self.user, access.get_pipe(self.user, pipe)))

    @operation(
        "rename_pipe",
        request=PipeChangeIn,
        responses=answers(
            200, PipeOut, "invalid", "role-too-low", "not-found", "name-taken", "body-too-large", "media-type"
        ),
    )
    def patch(self, request: Request, pipe: str) -> Response:
        """Rename a pipe, or set its loss threshold. Any other change needs a new revision."""
        row = access.get_pipe(self.user, pipe, access.RENAME_PIPE)
        body = body_of(request, PipeChangeIn)
        if not body:
            raise InvalidValue("name", "needs this field or loss_threshold_percent")
        if "name" in body:
            row = rename_pipe(pipe=row, name=body["name"], by=self.user)
        if "loss_threshold_percent" in body:
            set_loss_threshold(pipe=row, percent=body["loss_threshold_percent"], by=self.user)
        return Response(answer_of(self.user, row))


class ClosePipeView(View):
    """Closure of a pipe."""

    @operation("close_pipe", request=None, responses=answers(200, PipeOut, "role-too-low", "not-found"))
    def post(self, _request: Request, pipe: str) -> Response:
        """Stop accepting events. Accepted events are still delivered. Closing a closed pipe changes nothing."""
        row = access.get_pipe(self.user, pipe, access.CLOSE_PIPE)
        close_pipe(pipe=row, by=self.user)
        return Response(answer_of(self.user, row))


class ReopenPipeView(View):
    """Reopening of a pipe."""

    @operation(
        "reopen_pipe", request=None, responses=answers(200, PipeOut, "role-too-low", "not-found", "quota-exceeded")
    )
    def post(self, _request: Request, pipe: str) -> Response:
        """Accept events again. Reopening an open pipe changes nothing."""
        row = access.get_pipe(self.user, pipe, access.CLOSE_PIPE)
        reopen_pipe(pipe=row, by=self.user)
        return Response(answer_of(self.user, row))


def _shown(user: User) -> QuerySet[Pipe]:
    revisions = PipeRevision.objects.filter(pipe=OuterRef("pk")).order_by("-number").values("number")
    return access.with_roles(user, access.pipes_of(user)).annotate(
        admitted=Coalesce("admission__share", ALL_KEYS_PERCENT),
        live_revision=Subquery(revisions.filter(state=PipeRevision.State.LIVE)[:1]),
        newest_revision=Subquery(revisions[:1]),
    )


def answer_of(user: User, pipe: Pipe) -> dict[str, object]:
    """Return the body of a pipe's own endpoint."""
    return dict(PipeOut(_shown(user).get(id=pipe.id)).data)
