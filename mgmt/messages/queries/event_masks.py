"""Masked fields of received events, by pipe and revision."""

from django.db.models import Q

from dataplane.plan.masked_fields import WHOLE_EVENT, MaskedField, masked_fields
from mgmt.models import PipeRevision


class EventMasks:
    """Masks of events: those of the revision that took the event, and of the revisions that run or will run.

    A field that the pipe began to mask later is hidden in earlier events, too. Revisions are read once.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, int], frozenset[MaskedField]] = {}

    def of(self, pipe_id: str, revision: int) -> frozenset[MaskedField]:
        """Return the masked fields of events that this revision took; the whole event if the revision is not known."""
        name = (pipe_id, revision)
        if name not in self._known:
            rows = PipeRevision.objects.filter(Q(number=revision) | Q(state__in=PipeRevision.IN_USE), pipe_id=pipe_id)
            specs = dict(rows.values_list("number", "spec"))
            masks = frozenset[MaskedField]().union(*map(masked_fields, specs.values()))
            self._known[name] = masks if revision in specs else WHOLE_EVENT
        return self._known[name]
