"""Sequences of a pipe: counts by source, and the breaks of keys."""

from typing import Any, Final

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils import timezone
from django.views.decorators.http import require_safe

from mgmt.ledger.queries.bucket_range import SPANS, span_until
from mgmt.models import SequenceBreakRow
from mgmt.pipes.page_context import pipe_context
from mgmt.pipes.queries.pipes import specs_in_use
from mgmt.sequences.models import BREAKS_KEPT_D, MOST_OF_KIND
from mgmt.sequences.queries import SequenceBreakLine, break_rows, sequence_counts, sequence_paths, shown_breaks
from mgmt.web import access
from mgmt.web.export import KINDS, export
from mgmt.web.rendering import as_curl, for_members, once, show, viewer_of

_COLUMNS: Final = ("kind", "source", "key", "number", "previous", "missing", "missing_ranges", "position", "at")
MOST_SHOWN: Final = 200  # rows of the page, which refreshes; the export and the API have all
_LIVE: Final = {"head": "pipes/base.html", "breaks": "sequences/sequence.html"}


@for_members
@require_safe
def sequence(request: HttpRequest, pipe_id: str) -> HttpResponseBase:
    """List the breaks in the time range `range`, perhaps of one `kind`; `format` exports them."""
    pipe = access.get_pipe(viewer_of(request), pipe_id)
    span = span_until(request.GET.get("range", ""), timezone.now())
    asked = request.GET.get("kind", "")
    kind = asked if asked in SequenceBreakRow.Kind.values else ""
    specs = specs_in_use(pipe)
    paths = sequence_paths(specs)
    rows = break_rows(pipe, span, kind)
    if (form := request.GET.get("format", "")) in KINDS:
        return export(form, map(_exported, shown_breaks(pipe, rows, specs)), _COLUMNS, name=f"sequence-{pipe.id}")
    get_counts = once(lambda: sequence_counts(pipe, paths, span))
    context = pipe_context(pipe, "sequence") | {
        "span": span,
        "spans": list(SPANS),
        "kind": kind,
        "kinds": SequenceBreakRow.Kind.choices,
        "now": timezone.now(),
        "get_counts": get_counts,
        "get_compared": once(lambda: sum(one.compared for one in get_counts())),
        "get_found": once(lambda: sum(one.of(kind) for one in get_counts())),
        "get_lines": once(lambda: shown_breaks(pipe, rows[:MOST_SHOWN], specs)),
        "get_more": once(lambda: max(0, rows.count() - MOST_SHOWN)),
        "kept_d": BREAKS_KEPT_D,
        "most": MOST_OF_KIND,
        "curl": as_curl(request, f"pipes/{pipe.id}/sequence/?range={span.name}{f'&kind={kind}' if kind else ''}"),
    }
    return show(request, "sequences/sequence.html", context, tenant=pipe.tenant, live=_LIVE)


def _exported(line: SequenceBreakLine) -> dict[str, Any]:
    own = {name: getattr(line, name) for name in ("key", "number", "previous", "missing_ranges", "position")}
    return own | {name: getattr(line.row, name) for name in ("kind", "source", "missing", "at")}
