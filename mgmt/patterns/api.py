"""Usual ranges of a pipe's signals, and its findings."""

from rest_framework.request import Request
from rest_framework.response import Response

from mgmt.patterns.queries import MOST_FINDINGS, findings_of, pattern_now
from mgmt.patterns.serializers import PatternsOut
from mgmt.web import access
from mgmt.web.api_view import View
from mgmt.web.openapi import answers, operation


class PatternsView(View):
    """Patterns of one pipe."""

    @operation("get_patterns", responses=answers(200, PatternsOut, "not-found"))
    def get(self, _request: Request, pipe: str) -> Response:
        """Return volume, failures and lag with their usual ranges at this hour, and the newest 100 findings."""
        row = access.get_pipe(self.user, pipe)
        now = pattern_now(row)
        signals, since = (now.lines, now.since) if now else ((), None)
        found = {"since": since, "signals": signals, "findings": findings_of(row)[:MOST_FINDINGS]}
        return Response(PatternsOut(found).data)
