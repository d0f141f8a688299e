"""Usual ranges of a pipe's signals, its findings, and its ignored fields."""

from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from mgmt.patterns.queries import MOST_FINDINGS, findings_of, ignored_fields, pattern_now
from mgmt.patterns.serializers import IgnoredFieldIn, IgnoredFieldOut, PatternsOut
from mgmt.services import ignore_field, watch_field
from mgmt.web import access
from mgmt.web.api_view import View, body_of
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


class IgnoredFieldsView(View):
    """Numeric fields of one pipe whose drift is ignored. There are at most 200, and so no pages."""

    @operation("list_ignored_fields", responses=answers(200, IgnoredFieldOut(many=True), "not-found"))
    def get(self, _request: Request, pipe: str) -> Response:
        """List the numeric fields whose drift opens no alert."""
        return Response(IgnoredFieldOut(ignored_fields(access.get_pipe(self.user, pipe)), many=True).data)

    @operation(
        "ignore_field",
        request=IgnoredFieldIn,
        responses=answers(
            201,
            IgnoredFieldOut,
            "invalid",
            "role-too-low",
            "not-found",
            "name-taken",
            "limit-reached",
            "body-too-large",
            "media-type",
        ),
    )
    def post(self, request: Request, pipe: str) -> Response:
        """Ignore the drift of a numeric field. An open alert no longer names it."""
        row = access.get_pipe(self.user, pipe, access.HANDLE_ALERT)
        body = body_of(request, IgnoredFieldIn)
        ignored = ignore_field(pipe=row, source=body["source"], path=body["field"], by=self.user, now=timezone.now())
        return Response(IgnoredFieldOut(ignored).data, status=201)


class IgnoredFieldView(View):
    """One ignored field."""

    @operation("watch_field", responses=answers(204, None, "role-too-low", "not-found"))
    def delete(self, _request: Request, pipe: str, ignored: str) -> Response:
        """Watch an ignored field again."""
        watch_field(ignored=access.get_ignored_field(self.user, pipe, ignored, access.HANDLE_ALERT), by=self.user)
        return Response(status=204)
