"""Services of event types: bind subjects of the schema registry to a source."""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec
import structlog
from django.db import transaction

from dataplane.spec.steps import FieldPath
from dataplane.tables.records import TYPE_IN_FIELD, TYPE_IN_HEADER
from mgmt.audit.services import record
from mgmt.errors import EventTypesConflictError, InvalidValue, LimitReachedError, PipeClosedError
from mgmt.event_types.queries import bound_subjects
from mgmt.models import EventType, Pipe, Source, SourceEventTypes, Subject, User
from mgmt.pipes.header_names import names_a_header_without_secrets
from mgmt.quotas.services import hold_tenant

MAX_TYPES: Final = 20  # of one source; ingest compiles them all
MAX_BOUND: Final = 50  # subjects that a tenant's sources use; each data-plane process holds up to 512 kB of each
MAX_NAME: Final = 255
log = structlog.get_logger(__name__)


@transaction.atomic
def set_event_types(
    *, source: Source, type_from: str, subjects: Mapping[str, str], by: User, based_on: int | None = None
) -> SourceEventTypes:
    """Replace the event types of a source: `subjects` has the name of a subject for each type. Safe to repeat.

    Without any the source accepts all events again. Ingest applies the change within seconds.

    type_from: place of an event's type: "" (the source has one type, named ""), "field:<path>" or "header:<name>"
    based_on:  version that the caller has read, 0 if there was none; None replaces any version
    Raises InvalidValue, EventTypesConflictError, LimitReachedError, PipeClosedError.
    """
    if source.pipe.state == Pipe.State.CLOSED:
        raise PipeClosedError(f"{source.pipe.name} is closed. Open it again before you change event types.")
    type_from = _checked_place(type_from) if subjects else ""
    _check_names(type_from, subjects)
    hold_tenant(source.pipe.tenant_id)  # counts subjects, and makes concurrent changes of one source take turns
    row, _ = SourceEventTypes.objects.get_or_create(source=source)
    bound = {one.name: one.subject for one in row.types.select_related("subject")}
    if (row.type_from, {name: subject.name for name, subject in bound.items()}) == (type_from, dict(subjects)):
        return row
    if based_on is not None and based_on != row.version:
        raise EventTypesConflictError(
            f"The event types of {source.name} have version {row.version}, and your change is based on {based_on}. "
            "Read them again and apply your change to them."
        )
    before = {"type_from": row.type_from, "subjects": {name: subject.name for name, subject in bound.items()}}
    found = _bindable(source, subjects, {subject.name for subject in bound.values()})
    _check_room(source, found.values())
    row.types.all().delete()
    EventType.objects.bulk_create(EventType(source=row, name=name, subject=one) for name, one in found.items())
    row.type_from = type_from
    row.version += 1
    row.save()
    after = {"type_from": type_from, "subjects": dict(subjects)}
    record(pipe=source.pipe, by=by, action="event_types.set", target=source, before=before, after=after)
    log.info("event types set", pipe=source.pipe_id, source=source.name, version=row.version, by=by.username)
    return row


def _checked_place(type_from: str) -> str:
    """Return the place of an event's type in its stored form. Raises InvalidValue."""
    if type_from.startswith(TYPE_IN_FIELD):
        try:
            msgspec.convert(type_from.removeprefix(TYPE_IN_FIELD), FieldPath)
        except msgspec.ValidationError as exc:
            raise InvalidValue("type_from", "needs a path of field names divided by dots, such as field:type") from exc
    elif type_from.startswith(TYPE_IN_HEADER):
        name = type_from.removeprefix(TYPE_IN_HEADER).lower()
        if not names_a_header_without_secrets(name):
            raise InvalidValue("type_from", "needs the name of a header without secrets, such as header:x-event-type")
        type_from = TYPE_IN_HEADER + name
    elif type_from:
        raise InvalidValue("type_from", "needs field:<path>, header:<name>, or nothing for a source with one type")
    if len(type_from) > MAX_NAME:
        raise InvalidValue("type_from", f"needs at most {MAX_NAME} characters")
    return type_from


def _check_names(type_from: str, subjects: Mapping[str, str]) -> None:
    if len(subjects) > MAX_TYPES:
        raise InvalidValue("subjects", f"needs at most {MAX_TYPES} event types, got {len(subjects)}")
    if not type_from and set(subjects) - {""}:
        raise InvalidValue("subjects", 'needs the one event type "", because nothing names the type of an event')
    for name in subjects if type_from else ():
        if not 1 <= len(name) <= MAX_NAME or not name.isprintable() or name != name.strip():
            raise InvalidValue("subjects", f"needs event types of 1-{MAX_NAME} printable characters")


def _bindable(source: Source, subjects: Mapping[str, str], bound: set[str]) -> dict[str, Subject]:
    """Return the subject of each event type; `bound`: those of the source now, which may be deprecated."""
    rows = Subject.objects.filter(tenant=source.pipe.tenant_id, name__in=set(subjects.values()))
    known = {row.name: row for row in rows}
    versioned = set(rows.filter(versions__number=1).values_list("name", flat=True))
    for subject in subjects.values():
        if subject not in versioned:
            raise InvalidValue("subjects", f"needs a subject with a version, got {subject}")
        if known[subject].deprecated_at and subject not in bound:
            raise InvalidValue("subjects", f"needs subjects that are not deprecated, got {subject}")
    return {name: known[subject] for name, subject in subjects.items()}


def _check_room(source: Source, wanted: Iterable[Subject]) -> None:
    used = bound_subjects(source.pipe.tenant_id, but=source) | {subject.id for subject in wanted}
    if len(used) > MAX_BOUND:
        raise LimitReachedError(
            f"Your sources would use {len(used)} subjects, and may use {MAX_BOUND}. Remove event types first."
        )
