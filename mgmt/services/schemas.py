"""Schemas of sources: registering the next version, which may refuse nothing that the one before took."""

from typing import Any, Final

import structlog
from django.db import IntegrityError, transaction

from dataplane.spec.schema import SchemaError
from mgmt import sandbox
from mgmt.models import Pipe, Source, SourceSchema, User
from mgmt.services.errors import LimitReached, PipeClosed, SchemaBreaking, SchemaConflict

MAX_VERSIONS: Final = 500
log = structlog.get_logger(__name__)


def register_schema(*, source: Source, document: Any, author: User) -> tuple[SourceSchema, bool]:
    """Store the document as the source's next version; the newest one, and False, if it says just the same.

    Ingest goes by it within seconds. Two people who register at once meet at the unique constraint.
    Raises SchemaError, SchemaBreaking, SchemaConflict, LimitReached, PipeClosed.
    """
    text, newest = checked_next(source=source, document=document)
    if newest is not None and newest.text == text:
        return newest, False
    number = newest.number + 1 if newest else 1
    if number > MAX_VERSIONS:
        raise LimitReached(f"A source may have {MAX_VERSIONS} versions of its schema. Make a new source.")
    try:
        with transaction.atomic():
            made = SourceSchema.objects.create(source=source, number=number, text=text, author=author)
    except IntegrityError as exc:
        raise SchemaConflict(f"Somebody registered version {number} just now. Read it, then register yours.") from exc
    log.info("schema registered", pipe=source.pipe_id, source=source.name, number=number, by=author.username)
    return made, True


def checked_next(*, source: Source, document: Any) -> tuple[str, SourceSchema | None]:
    """The document as it would be kept, and the version that it follows, if any; nothing is stored.

    The comparison runs in a sandbox worker. Raises SchemaError, SchemaBreaking, PipeClosed, SandboxRefused.
    """
    if source.pipe.state == Pipe.State.CLOSED:
        raise PipeClosed(f"{source.pipe.name} is closed. Open it again before you register a schema.")
    if is_read(source):
        raise SchemaError((), "needs a source that events are posted to: what is read from a topic is taken as it is")
    newest = source.schemas.order_by("-number").first()
    before = None if newest is None else newest.document
    found = sandbox.check_schema(document, before=before, owner=source.pipe.tenant_id)
    if newest is not None and (broken := found.broken):
        what = "; ".join(map(str, broken[:3])) + ("; and more" if len(broken) > 3 else "")
        hint = "Send events of another shape to a new source, beside this one."
        raise SchemaBreaking(f"Version {newest.number} takes events that this one would refuse: {what}. {hint}", broken)
    return found.text, newest


def is_read(source: Source) -> bool:
    """Whether the newest revision has it read from a Kafka: refusing there would be losing."""
    spec = source.pipe.revisions.order_by("-number").values_list("spec", flat=True).first() or {}
    kind: str = spec.get("sources", {}).get(source.name, {}).get("type", "http")
    return kind == "kafka"
