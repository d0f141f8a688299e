"""Schemas of a source, and what its newest event would be told by one."""

from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from dataplane.spec.schema import Misfit, SchemaError
from mgmt import sandbox
from mgmt.models import Source, SourceSchema
from mgmt.queries.last_event import NoEvent, RecordsAway, last_event
from mgmt.sandbox import SandboxRefused


@dataclass(frozen=True)
class Tried:
    """The source's newest event, by its message id, and why it would be refused; None if it would be taken."""

    message: str
    misfit: Misfit | None

    def __str__(self) -> str:
        if self.misfit is None:
            return f"Its newest event, {self.message}, fits."
        where = self.misfit.pointer or "the event"
        return f"Its newest event, {self.message}, would be refused: {where}: {self.misfit.reason}."


def schemas_of(source: Source) -> QuerySet[SourceSchema]:
    """All versions, the newest first."""
    return source.schemas.select_related("author").order_by("-number")


def newest_event_by(source: Source, document: Any) -> Tried | None:
    """Try a schema on the source's newest event, in a sandbox worker; None if that is not possible now."""
    try:
        record = last_event(source.pipe)
        if record.meta.source != source.name:  # the newest of the pipe came in by another one
            return None
        found = sandbox.check_schema(document, event=record.body, owner=source.pipe.tenant_id)
    except (NoEvent, RecordsAway, SandboxRefused, SchemaError):
        return None
    return Tried(record.meta.id, found.misfit)
