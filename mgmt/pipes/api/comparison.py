"""Comparisons of a draft with the live revision."""

from typing import Any

from django.urls import reverse
from rest_framework.request import Request
from rest_framework.response import Response

from mgmt.messages.queries.records import RecordUnavailableError
from mgmt.models import Pipe
from mgmt.pipes.comparison_serializers import COMPARISON_EXAMPLE, ComparisonIn, ComparisonOut
from mgmt.pipes.editor.comparison import ComparedExample, example_of, left_out, summary
from mgmt.pipes.queries.comparison import Comparison, NotComparableError, compare_with_live
from mgmt.services import check_revision
from mgmt.web import access
from mgmt.web.api_view import View, body_of
from mgmt.web.openapi import answers, example, operation
from mgmt.web.problems import ProblemError
from mgmt.web.throttling import ApiThrottle, ComparisonThrottle


class ComparisonView(View):
    """Comparison of a draft with the live revision."""

    throttle_classes = [ApiThrottle, ComparisonThrottle]

    @operation(
        "compare_draft",
        idempotency_key=False,
        request=ComparisonIn,
        responses=answers(
            200,
            ComparisonOut,
            "invalid",
            "not-found",
            "not-comparable",
            "body-too-large",
            "media-type",
            "spec-invalid",
            "destination-forbidden",
            "quota-exceeded",
            "unavailable",
            "busy",
            "too-expensive",
            "too-many-at-once",
        ),
        examples=[example(COMPARISON_EXAMPLE)],
    )
    def post(self, request: Request, pipe: str) -> Response:
        """Run the newest 100 events of a pipe through a draft and the live revision, and return what differs.

        Nothing is sent or stored. Each event counts once: same, changed, re-routed, rejected or no longer rejected.
        """
        row = access.get_pipe(self.user, pipe)
        spec = body_of(request, ComparisonIn)["spec"]
        check_revision(pipe=row, spec=spec)
        try:
            found = compare_with_live(row, spec, owner=f"user {self.user.pk}")
        except NotComparableError as exc:
            raise ProblemError("not-comparable", str(exc)) from exc
        except RecordUnavailableError as exc:
            raise ProblemError("unavailable", f"The pipe's newest events cannot be read: {exc}.") from exc
        return Response(ComparisonOut(_shown(row, found)).data)


def _shown(pipe: Pipe, found: Comparison) -> dict[str, Any]:
    return {
        "live": found.live,
        "found": found.wanted,
        "compared": found.compared,
        "summary": summary(found),
        "counts": found.counts,
        "examples": [_example(pipe, example_of(one)) for one in found.examples],
        "left_out": left_out(found),
        "notes": found.notes,
    }


def _example(pipe: Pipe, one: ComparedExample) -> dict[str, Any]:
    meta = one.event.record.meta
    return {
        "kind": one.kind,
        "message_id": meta.id,
        "position": one.position,
        "url": reverse("api:message", args=[pipe.id, one.position]),
        "source": meta.source,
        "ingest_time": one.came_at,
        "live_to": one.before,
        "draft_to": one.after,
        "reason": one.reason,
        "lines": one.lines,
        "is_cut": one.is_cut,
    }
