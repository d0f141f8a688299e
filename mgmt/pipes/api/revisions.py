"""Revisions of a pipe: list, read, compare, publish."""

from collections import Counter

from django.urls import reverse
from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.response import Response

from mgmt.models import PipeRevision
from mgmt.pipes.editor.diff import changed_lines
from mgmt.pipes.editor.draft import readable
from mgmt.pipes.serializers import DIFF_EXAMPLE, RevisionDiffOut, RevisionIn, RevisionOut, RevisionPageOut
from mgmt.services import publish_revision, spread_keys
from mgmt.web import access
from mgmt.web.api_view import View, body_of
from mgmt.web.openapi import LOCATION, PAGE_PARAMETERS, answers, example, operation
from mgmt.web.pagination import RevisionPage, number_in, page_of
from mgmt.web.problems import ProblemError

AGAINST = OpenApiParameter("against", int, description="Revision to compare with. Default: the one before.")


class RevisionsView(View):
    """Revisions of a pipe."""

    @operation(
        "list_revisions",
        parameters=PAGE_PARAMETERS,
        responses=answers(200, RevisionPageOut, "parameter-invalid", "not-found"),
    )
    def get(self, request: Request, pipe: str) -> Response:
        """List a pipe's revisions, newest first."""
        revisions = access.get_pipe(self.user, pipe).revisions.select_related("author")
        rows, paginator = page_of(revisions, request, RevisionPage())
        return paginator.get_paginated_response(RevisionOut(rows, many=True).data)

    @operation(
        "publish_revision",
        parameters=[LOCATION],
        request=RevisionIn,
        responses=answers(
            201,
            RevisionOut,
            "invalid",
            "role-too-low",
            "not-found",
            "revision-conflict",
            "unchanged",
            "body-too-large",
            "media-type",
            "spec-invalid",
            "credential-needed",
        ),
    )
    def post(self, request: Request, pipe: str) -> Response:
        """Publish the next revision. Fails with `revision-conflict` if `based_on` is not the newest revision."""
        row = access.get_pipe(self.user, pipe, access.PUBLISH_REVISION)
        body = body_of(request, RevisionIn)
        try:
            revision = publish_revision(
                pipe=row,
                spec=body["spec"],
                based_on=body["based_on"],
                author=self.user,
                credentials=body.get("credentials", {}),
                at_once=body["at_once"],
                must_change=True,
            )
        except PipeRevision.DoesNotExist as exc:
            reason = "needs the number of a revision of this pipe"
            error = {"pointer": "#/based_on", "detail": reason, "code": "does-not-exist"}
            raise ProblemError("invalid", errors=[error]) from exc
        location = reverse("api:revision", args=[row.id, revision.number])
        return Response(RevisionOut(revision).data, status=201, headers={"Location": location})


class SpreadKeysView(View):
    """Spread of a pipe's keys over all partitions."""

    @operation(
        "spread_keys",
        parameters=[LOCATION],
        request=None,
        responses=answers(
            201, RevisionOut, "role-too-low", "not-found", "order-needed", "pipe-closed", "unchanged", "spec-invalid"
        ),
    )
    def post(self, _request: Request, pipe: str) -> Response:
        """Publish a revision that distributes the events of each key over all partitions, as a hot partition needs.

        It sets `spread_key` at each source whose events have keys, and takes all keys at once. Fails with
        `order-needed` if a destination keeps the order of each key, with `unchanged` if no key is left to spread. To
        undo it, publish the earlier spec again.
        """
        row = access.get_pipe(self.user, pipe, access.PUBLISH_REVISION)
        revision = spread_keys(pipe=row, by=self.user)
        location = reverse("api:revision", args=[row.id, revision.number])
        return Response(RevisionOut(revision).data, status=201, headers={"Location": location})


class RevisionDetail(View):
    """One revision."""

    @operation("get_revision", responses=answers(200, RevisionOut, "not-found"))
    def get(self, _request: Request, pipe: str, number: int) -> Response:
        """Return a revision as it was published."""
        return Response(RevisionOut(access.get_revision(self.user, pipe, number)).data)


class RevisionDiffView(View):
    """Changes between two revisions."""

    @operation(
        "get_revision_diff",
        parameters=[AGAINST],
        responses=answers(200, RevisionDiffOut, "not-found"),
        examples=[example(DIFF_EXAMPLE)],
    )
    def get(self, request: Request, pipe: str, number: int) -> Response:
        """Return what a revision changed, line by line of its spec. The first revision is compared with nothing."""
        new = access.get_revision(self.user, pipe, number)
        against = number_in(request, "against", number - 1, least=1, most=999_999_999)
        old = access.get_revision(self.user, pipe, against) if against else None
        before = readable(old.spec).splitlines() if old else []
        lines = changed_lines(before, readable(new.spec).splitlines())
        kinds = Counter(line.kind for line in lines)
        counts = {"added": kinds["new"], "removed": kinds["gone"]}
        body = {"number": number, "against": against or None, **counts, "lines": lines}
        return Response(RevisionDiffOut(body).data)
