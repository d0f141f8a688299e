"""Selection in the URL of a pipe's page: a time range, minutes within it, and a stage."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final
from urllib.parse import urlencode

from django.http import HttpRequest

from mgmt.ledger.queries.bucket_range import BucketRange, SelectionError, selected_range, span_until, start_of
from mgmt.ledger.queries.timing import SLICE_NAMES

_TIME_FORM: Final = "%Y-%m-%dT%H:%M"


@dataclass(frozen=True)
class PipeView:
    """Selection of the page.

    axis:     time range of the plots
    span:     minutes of all other blocks: the selected ones, or those of the plots
    stage:    stage of which the slowest messages are listed; "" for the whole delivery
    problem:  why the selection is ignored; "" if it is used or if there is none
    """

    range: str
    axis: BucketRange
    span: BucketRange
    stage: str
    problem: str = ""

    @property
    def is_selection(self) -> bool:
        """True if the page shows selected minutes."""
        return not self.span.name

    @property
    def since(self) -> datetime:
        """Start of the selected minutes."""
        return start_of(self.span.first)

    @property
    def until(self) -> datetime:
        """End of the selected minutes."""
        return start_of(self.span.last + 1)

    @property
    def span_query(self) -> str:
        """Query that selects the same minutes."""
        return urlencode({"range": self.range} | self._selection)

    @property
    def query(self) -> str:
        """Query that selects the same minutes and stage."""
        return urlencode({"range": self.range} | self._selection | self._stage)

    @property
    def cleared_query(self) -> str:
        """Query that selects the same range and stage, without the selected minutes."""
        return urlencode({"range": self.range} | self._stage)

    @property
    def _selection(self) -> dict[str, str]:
        if not self.is_selection:
            return {}
        return {"from": self.since.strftime(_TIME_FORM), "to": self.until.strftime(_TIME_FORM)}

    @property
    def _stage(self) -> dict[str, str]:
        return {"stage": self.stage} if self.stage else {}


def pipe_view(request: HttpRequest, now: datetime) -> PipeView:
    """Return what the URL selects; an impossible selection of minutes is ignored, with the reason."""
    axis, stage = span_until(request.GET.get("range", ""), now), request.GET.get("stage", "")
    view = PipeView(axis.name, axis, axis, stage if stage in SLICE_NAMES.values() else "")
    since, until = request.GET.get("from", ""), request.GET.get("to", "")
    if not since and not until:
        return view
    try:
        span = selected_range(since, until, now)
    except SelectionError as exc:
        return replace(view, problem=str(exc))
    return replace(view, span=span, axis=axis if span.first >= axis.first else span)
