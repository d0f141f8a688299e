"""Patterns: what is usual of a pipe, and what was unusual."""

from rest_framework.request import Request
from rest_framework.response import Response

from mgmt import access
from mgmt.api.pattern_shapes import PatternsOut
from mgmt.api.schema import answers, operation
from mgmt.api.views.base import View
from mgmt.queries.patterns import MOST_FINDINGS, findings_of, pattern_now


class PatternsView(View):
    """One pipe's."""

    @operation("get_patterns", responses=answers(200, PatternsOut, "not-found"))
    def get(self, _request: Request, pipe: str) -> Response:
        """Volume, failures and lag beside what is usual at this hour, and the newest 100 findings."""
        row = access.get_pipe(self.user, pipe)
        now = pattern_now(row)
        signals, since = (now.lines, now.since) if now else ((), None)
        found = {"since": since, "signals": signals, "findings": findings_of(row)[:MOST_FINDINGS]}
        return Response(PatternsOut(found).data)
