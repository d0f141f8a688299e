"""Services of schemas: register a source's next version, which must accept all events that the one before accepted."""

from typing import Any, Final

import structlog
from django.db import IntegrityError, transaction

from dataplane.spec.schema import SchemaError
from mgmt import sandbox
from mgmt.audit.services import record
from mgmt.errors import LimitReachedError, PipeClosedError, SchemaConflictError, SchemaIncompatibleError
from mgmt.models import Pipe, Source, SourceSchema, User

MAX_VERSIONS: Final = 500
log = structlog.get_logger(__name__)


def register_schema(*, source: Source, document: Any, author: User) -> tuple[SourceSchema, bool]:
    """Store the document as the source's next version. Return it and True; or the newest version and False if equal.

    Ingest applies it within seconds. The unique constraint refuses one of two concurrent registrations.
    Raises SchemaError, SchemaIncompatibleError, SchemaConflictError, LimitReachedError, PipeClosedError.
    """
    text, newest = checked_next(source=source, document=document)
    if newest is not None and newest.text == text:
        return newest, False
    number = newest.number + 1 if newest else 1
    if number > MAX_VERSIONS:
        raise LimitReachedError(f"A source may have {MAX_VERSIONS} versions of its schema. Create a new source.")
    try:
        with transaction.atomic():
            made = SourceSchema.objects.create(source=source, number=number, text=text, author=author)
            record(pipe=source.pipe, by=author, action="schema.registered", target=made)
    except IntegrityError as exc:
        raise SchemaConflictError(
            f"Another user registered version {number} just now. Read it, then register yours."
        ) from exc
    log.info("schema registered", pipe=source.pipe_id, source=source.name, number=number, by=author.username)
    return made, True


def checked_next(*, source: Source, document: Any) -> tuple[str, SourceSchema | None]:
    """Return the text that would be stored, and the newest version, if any. Stores nothing.

    The comparison runs in a sandbox worker. Raises SchemaError, SchemaIncompatibleError, PipeClosedError,
    SandboxRefused.
    """
    if source.pipe.state == Pipe.State.CLOSED:
        raise PipeClosedError(f"{source.pipe.name} is closed. Open it again before you register a schema.")
    if is_read(source):
        raise SchemaError(
            (), "needs an HTTP source: events that are read from a topic or a table are not checked against a schema"
        )
    newest = source.schemas.order_by("-number").first()
    before = None if newest is None else newest.document
    found = sandbox.check_schema(document, before=before, owner=source.pipe.tenant_id)
    if newest is not None and (broken := found.broken):
        what = "; ".join(map(str, broken[:3])) + ("; and more" if len(broken) > 3 else "")
        hint = "Send events of another shape to a second source."
        raise SchemaIncompatibleError(
            f"Version {newest.number} accepts events that this one would refuse: {what}. {hint}", broken
        )
    return found.text, newest


def is_read(source: Source) -> bool:
    """Return True if the newest revision reads the source from a topic or a table, where a refused event is lost."""
    spec = source.pipe.revisions.order_by("-number").values_list("spec", flat=True).first() or {}
    kind: str = spec.get("sources", {}).get(source.name, {}).get("type", "http")
    return kind != "http"
