"""Schemas of a source, and trials of a schema on the source's newest event."""

from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from dataplane.spec.schema import SchemaError, SchemaMismatch
from mgmt import sandbox
from mgmt.messages.queries.last_event import NoEventError, RecordUnavailableError, last_event
from mgmt.models import Source, SourceSchema
from mgmt.sandbox import SandboxRefused


@dataclass(frozen=True)
class SchemaTrial:
    """Trial on the source's newest event, named by its message id. `misfit` is None if the event would be accepted."""

    message: str
    misfit: SchemaMismatch | None

    def __str__(self) -> str:
        if self.misfit is None:
            return f"Its newest event, {self.message}, fits."
        where = self.misfit.pointer or "the event"
        return f"Its newest event, {self.message}, would be refused: {where}: {self.misfit.reason}."


def schemas_of(source: Source) -> QuerySet[SourceSchema]:
    """Return all versions, newest first."""
    return source.schemas.select_related("author").order_by("-number")


def newest_event_by(source: Source, document: Any) -> SchemaTrial | None:
    """Try a schema on the source's newest event, in a sandbox worker; None if that is not possible now."""
    try:
        record = last_event(source.pipe)
        if record.meta.source != source.name:  # the pipe's newest event is of another source
            return None
        found = sandbox.check_schema(document, event=record.body, owner=source.pipe.tenant_id)
    except (NoEventError, RecordUnavailableError, SandboxRefused, SchemaError):
        return None
    return SchemaTrial(record.meta.id, found.misfit)
