"""Sequences of a pipe: counts by source, and the breaks of keys."""

from collections.abc import Iterable
from typing import Any, Final
from urllib.parse import urlencode

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils import timezone
from django.views.decorators.http import require_safe

from mgmt.ids import storable
from mgmt.ledger.queries.bucket_range import SPANS, span_until
from mgmt.models import SequenceBreakRow
from mgmt.pipes.page_context import pipe_context
from mgmt.pipes.queries.pipes import specs_in_use
from mgmt.sequences.models import BREAKS_KEPT_D, MOST_OF_KIND
from mgmt.sequences.queries import (
    BreakFilter,
    SequenceBreakLine,
    SequenceCounts,
    breaks_of,
    sequence_counts,
    sequence_paths,
)
from mgmt.web import access
from mgmt.web.export import KINDS, export
from mgmt.web.rendering import as_curl, for_members, once, show, viewer_of

_COLUMNS: Final = ("kind", "source", "key", "number", "previous", "missing", "missing_ranges", "position", "at")
MOST_SHOWN: Final = 200  # rows of the page, which refreshes; the export and the API have all
_LIVE: Final = {"head": "pipes/base.html", "breaks": "sequences/sequence.html"}


@for_members
@require_safe
def sequence(request: HttpRequest, pipe_id: str) -> HttpResponseBase:
    """List the breaks in the time range `range`, perhaps of one `kind`, `source` or `key`; `format` exports them."""
    pipe = access.get_pipe(viewer_of(request), pipe_id)
    span = span_until(request.GET.get("range", ""), timezone.now())
    asked = request.GET.get("kind", "")
    kind = asked if asked in SequenceBreakRow.Kind.values else ""
    wanted = BreakFilter(kind, *(storable(request.GET.get(name, "")) for name in ("source", "key")))
    filters = {name: value for name, value in wanted._asdict().items() if value}
    query = urlencode({"range": span.name} | filters)
    specs = specs_in_use(pipe)
    get_breaks = once(lambda: breaks_of(pipe, span, wanted, specs))
    if (form := request.GET.get("format", "")) in KINDS:
        return export(form, map(_exported, get_breaks()), _COLUMNS, name=f"sequence-{pipe.id}")
    get_counts = once(lambda: sequence_counts(pipe, sequence_paths(specs), span))
    context = pipe_context(pipe, "sequence") | {
        "span": span,
        "spans": [(name, urlencode({"range": name} | filters)) for name in SPANS],
        "wanted": wanted,
        "filters": filters,
        "query": query,
        "kinds": SequenceBreakRow.Kind.choices,
        "now": timezone.now(),
        "get_counts": get_counts,
        "get_sources": once(lambda: [one.source for one in get_counts()]),
        "get_compared": once(lambda: sum(one.compared for one in get_counts())),
        "get_found": once(lambda: 0 if wanted.key else _counted(get_counts(), wanted)),
        "get_lines": once(lambda: get_breaks()[:MOST_SHOWN]),
        "get_more": once(lambda: max(0, len(get_breaks()) - MOST_SHOWN)),
        "kept_d": BREAKS_KEPT_D,
        "most": MOST_OF_KIND,
        "curl": as_curl(f"pipes/{pipe.id}/sequence/?{query}"),
    }
    return show(request, "sequences/sequence.html", context, tenant=pipe.tenant, live=_LIVE)


def _counted(counts: Iterable[SequenceCounts], wanted: BreakFilter) -> int:
    """Return the number of breaks that the ledger counts, of one kind and source if the filter names them."""
    return sum(one.of(wanted.kind) for one in counts if wanted.source in ("", one.source))


def _exported(line: SequenceBreakLine) -> dict[str, Any]:
    own = {name: getattr(line, name) for name in ("key", "number", "previous", "missing_ranges", "position")}
    return own | {name: getattr(line.row, name) for name in ("kind", "source", "missing", "at")}
