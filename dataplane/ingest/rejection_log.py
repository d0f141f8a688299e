"""Note rejected events in the book: what they have in common, and a sample under the masks of their pipe."""

from typing import Any, Final

import msgspec

from dataplane.ingest.problems import EventRejectedError
from dataplane.ingest.rejections import (
    DETAIL_CHARS,
    TYPE_CHARS,
    RejectedEvent,
    RejectionBook,
    RejectionKey,
    is_counted,
    pointer_kind,
    sample_body,
    shown_place,
)
from dataplane.ingest.route import SourceRoute
from dataplane.ingest.version_traffic import TrafficBook
from dataplane.ledger.rejections import RejectionSample
from dataplane.ledger.units import MINUTE_US
from dataplane.plan.masked_fields import WHOLE_EVENT, MaskedField, hides, masked_fields
from dataplane.tables.control import ControlTable
from dataplane.tables.records import PipeRecord

HIDDEN: Final = "***"
_Masks = frozenset[MaskedField]


class RejectionLog:
    """Takes the rejected events of all sources. `table`: has the plans of their pipes, which say what is masked."""

    def __init__(self, table: ControlTable, book: RejectionBook, traffic: TrafficBook) -> None:
        self._table = table
        self._book = book
        self._traffic = traffic
        self._masks: dict[str, tuple[tuple[int, ...], _Masks]] = {}

    def note(
        self, route: SourceRoute, refusal: EventRejectedError, now_us: int, body: bytes | None, value: Any = None
    ) -> None:
        """Count an event that is refused to its sender, unless a retry or a quota ends that. A hot path of senders."""
        if is_counted(refusal):
            self.add(self.describe(route, refusal, now_us, body, value))

    def add(self, rejection: RejectedEvent) -> None:
        """Count an event that was described before."""
        self._book.add(rejection)
        self._traffic.reject(rejection.key.pipe, rejection.key.source, rejection.version, rejection.at_us)

    def describe(
        self, route: SourceRoute, refusal: EventRejectedError, now_us: int, body: bytes | None, value: Any = None
    ) -> RejectedEvent:
        """Describe a rejected event. `body`, `value`: as received and decoded; None if it could not be read."""
        masks = self._masks_of(route.pipe)
        pointer, detail = shown_place(refusal.pointer, refusal.detail, masks)
        key = RejectionKey(
            route.pipe.pipe,
            route.source,
            _shown_type(route, refusal, masks),
            refusal.code,
            pointer_kind(pointer),
            route.sender,
            now_us // MINUTE_US,
        )
        sample = None
        if body is not None and self._book.wants_sample(key):
            sample = RejectionSample(now_us, len(body), sample_body(body, value, masks, refusal.pointer))
        return RejectedEvent(key, detail[:DETAIL_CHARS], sample, refusal.version, now_us)

    def _masks_of(self, pipe: PipeRecord) -> _Masks:
        """Return what the revisions that run mask; the whole event if the plan of one is not known."""
        revisions = tuple(revision for revision, _ in pipe.weights)
        known = self._masks.get(pipe.pipe)
        if known is not None and known[0] == revisions:
            return known[1]
        plans = [self._table.plan(pipe.pipe, revision) for revision in revisions]
        specs = [msgspec.to_builtins(plan.spec) for plan in plans if plan is not None]
        if len(specs) < len(plans):
            return WHOLE_EVENT
        masks = frozenset[MaskedField]().union(*map(masked_fields, specs))
        self._masks[pipe.pipe] = (revisions, masks)
        return masks


def _shown_type(route: SourceRoute, refusal: EventRejectedError, masks: _Masks) -> str:
    """Return the event's type; hidden if it is an unknown one in a field that the pipe masks."""
    path = route.gate.type_path if route.gate is not None else ""
    if path and refusal.code == "event-type-unknown" and hides(masks, path):
        return HIDDEN
    return refusal.event_type[:TYPE_CHARS]
