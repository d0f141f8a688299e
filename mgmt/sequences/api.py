"""Sequences of a pipe: counts by source, and breaks."""

from typing import Any

from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.response import Response

from mgmt.models import SequenceBreakRow
from mgmt.pipes.queries.pipes import specs_in_use
from mgmt.sequences.queries import BreakFilter, breaks_of, sequence_counts, sequence_paths
from mgmt.sequences.serializers import SequenceOut
from mgmt.web import access
from mgmt.web.api_view import View
from mgmt.web.openapi import answers, operation
from mgmt.web.pagination import choice_of, text_of
from mgmt.web.time_ranges import RANGE_PARAMETERS, range_of

FILTERS = [
    OpenApiParameter("kind", str, enum=SequenceBreakRow.Kind.values, description="Only breaks of this kind."),
    OpenApiParameter("source", str, description="Only breaks of this source."),
    OpenApiParameter("key", str, description="Only breaks of this key, as it is shown."),
]


class SequenceView(View):
    """Sequences of one pipe. There are at most 500 breaks of a kind, and so no pages."""

    @operation(
        "get_sequence",
        parameters=[*RANGE_PARAMETERS, *FILTERS],
        responses=answers(200, SequenceOut, "not-found", "parameter-invalid"),
    )
    def get(self, request: Request, pipe: str) -> Response:
        """Return the counts of each source with a sequence, and its breaks: gaps, reorderings, repeats.

        The newest 500 breaks of each kind are kept, for seven days. The counts include all.
        """
        row, span = access.get_pipe(self.user, pipe), range_of(request)
        kind = choice_of(request, "kind", SequenceBreakRow.Kind.values)
        wanted = BreakFilter(kind, text_of(request, "source"), text_of(request, "key"))
        specs = specs_in_use(row)
        found: dict[str, Any] = {
            "sources": sequence_counts(row, sequence_paths(specs), span),
            "results": breaks_of(row, span, wanted, specs),
        }
        return Response(SequenceOut(found).data)
