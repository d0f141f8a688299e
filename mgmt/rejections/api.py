"""Rejected events of a pipe: by type, reason and sender, with samples and the version that would accept them."""

from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from mgmt.rejections.queries import masks_of, rejection_line, rejection_lines, schema_of, shown_samples
from mgmt.rejections.serializers import RejectionDetailOut, RejectionsOut
from mgmt.web import access
from mgmt.web.api_view import View
from mgmt.web.openapi import answers, operation
from mgmt.web.time_ranges import RANGE_PARAMETERS, range_of


class RejectionsView(View):
    """Rejected events of one pipe. There are at most a few hundred kinds of a tenant, and so no pages."""

    @operation(
        "list_rejections",
        parameters=RANGE_PARAMETERS,
        responses=answers(200, RejectionsOut, "not-found", "parameter-invalid"),
    )
    def get(self, request: Request, pipe: str) -> Response:
        """List the events that ingest refused, or that did not fit event types, by kind. They are kept for three days.

        Refusals for an exceeded quota are not listed.
        """
        lines = rejection_lines(access.get_pipe(self.user, pipe), range_of(request))
        return Response(RejectionsOut({"results": lines}).data)


class RejectionView(View):
    """Rejected events of one kind."""

    @operation(
        "get_rejection",
        parameters=RANGE_PARAMETERS,
        responses=answers(200, RejectionDetailOut, "not-found", "parameter-invalid"),
    )
    def get(self, request: Request, pipe: str, rejection: int) -> Response:
        """Return one kind of rejected events with samples, and the version of the schema that would accept them.

        To accept them, register the proposal under the subject: the registry checks its compatibility.
        """
        row = access.get_rejection(self.user, pipe, rejection)
        line, masks = rejection_line(row, range_of(request)), masks_of(row.pipe)
        subject, accepting = schema_of(row, masks)
        names = ("row", "events", "sender", "is_stored", "reason")
        found: dict[str, Any] = {name: getattr(line, name) for name in names}
        found |= {"samples": shown_samples(row, masks), "subject": subject, "accepting": accepting}
        return Response(RejectionDetailOut(found).data)
