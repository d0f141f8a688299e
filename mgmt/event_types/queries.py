"""Event types of sources, and the pipes that produce and consume the events of a subject."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from django.db.models import OuterRef, QuerySet, Subquery

from dataplane.schemas.shapes import Shape, shape_of
from dataplane.schemas.types import ParsedSchema, SchemaType
from mgmt.event_types.asyncapi import CatalogueMessage, CatalogueSource
from mgmt.models import Destination, EventType, Pipe, Source, SourceEventTypes, Subject, SubjectVersion

MAX_FOLLOWED: Final = 20  # versions of a subject, the newest ones, whose fields the steps of a pipe may use
MAX_FOLLOWED_CHARS: Final = 256 * 1024  # of all schemas of a pipe: reading more would block the request for seconds


@dataclass(frozen=True)
class SubjectProducer:
    """A source whose events must fit a subject, and the destinations that its pipe delivers to.

    type_names: event types of the source that use the subject
    """

    source: Source
    type_names: tuple[str, ...]
    destinations: tuple[str, ...]


def event_types_of(source: Source) -> QuerySet[EventType]:
    """Return the event types of a source with their subjects, by name; `newest_number` is the subject's version."""
    newest = SubjectVersion.objects.filter(subject=OuterRef("subject")).order_by("-number")
    rows = EventType.objects.filter(source=source.pk).select_related("subject").order_by("name")
    return rows.annotate(
        newest_number=Subquery(newest.values("number")[:1]), schema_type=Subquery(newest.values("schema__type")[:1])
    )


def type_settings_of(source: Source) -> SourceEventTypes:
    """Return place and version of a source's event types; an unsaved row of version 0 if they were never set."""
    return SourceEventTypes.objects.filter(source=source).first() or SourceEventTypes(source=source)


def bindable_subjects(tenant_id: str) -> QuerySet[Subject]:
    """Return the subjects that an event type may be bound to: those with a version that are not deprecated."""
    return Subject.objects.filter(tenant=tenant_id, versions__number=1, deprecated_at=None).order_by("name")


def bound_subjects(tenant_id: str, *, but: Source) -> set[str]:
    """Return the ids of the subjects that the tenant's other sources use."""
    rows = EventType.objects.filter(subject__tenant=tenant_id).exclude(source=but.pk)
    return set(rows.order_by().values_list("subject_id", flat=True).distinct())


def producers_of(subject: Subject) -> list[SubjectProducer]:
    """Return the sources that use a subject, with the destinations of their pipes, by names of pipe and source."""
    types: dict[Source, list[str]] = {}
    rows = EventType.objects.filter(subject=subject).select_related("source__source__pipe")
    for row in rows.order_by("source__source__pipe__name", "source__source__name", "name"):
        types.setdefault(row.source.source, []).append(row.name)
    pipes = {source.pipe_id for source in types}
    kept = Destination.objects.filter(pipe__in=pipes).exclude(state=Destination.State.REMOVED).order_by("name")
    destinations: dict[str, list[str]] = {}
    for pipe, name in kept.values_list("pipe_id", "name"):
        destinations.setdefault(pipe, []).append(name)
    return [
        SubjectProducer(source, tuple(names), tuple(destinations.get(source.pipe_id, ())))
        for source, names in types.items()
    ]


def newest_versions_of(types: Iterable[EventType]) -> dict[str, SubjectVersion]:
    """Return the newest version of each event type's subject with its schema, by the id of the subject."""
    rows = SubjectVersion.objects.filter(subject__in={one.subject_id for one in types})
    newest = rows.order_by("subject", "-number").distinct("subject").select_related("schema")
    return {one.subject_id: one for one in newest}


def catalogue_sources(tenant_id: str) -> list[CatalogueSource]:
    """Return the tenant's sources that have event types, except those of closed pipes, with their newest schemas."""
    rows = EventType.objects.filter(source__source__pipe__tenant=tenant_id)
    rows = rows.exclude(source__source__pipe__state=Pipe.State.CLOSED).select_related("subject", "source__source__pipe")
    types = list(rows.order_by("source__source__pipe__name", "source__source_id", "name"))
    newest = newest_versions_of(types)
    found: dict[int, CatalogueSource] = {}
    for one in types:
        source = one.source.source
        listed = found.setdefault(
            source.pk,
            CatalogueSource(
                source.pipe_id, source.pipe.name, source.name, one.source.type_from, one.source.version, []
            ),
        )
        version = newest[one.subject_id]
        schema = version.schema
        listed.messages.append(
            CatalogueMessage(one.name, one.subject.name, version.number, SchemaType(schema.type), schema.document)
        )
    return list(found.values())


def event_shapes_of(pipe_id: str) -> dict[str, Shape]:
    """Return the shape of the events of each of a pipe's sources that has event types, by the source's name.

    None at all if the schemas are too large to be read within a request.
    """
    rows = EventType.objects.filter(source__source__pipe=pipe_id).select_related("source__source")
    subjects: dict[str, set[str]] = {}
    for row in rows:
        subjects.setdefault(row.source.source.name, set()).add(row.subject_id)
    parsed: dict[str, list[ParsedSchema]] = {}
    chars = 0
    for subject in set().union(*subjects.values()):
        parsed[subject] = _followed(subject)
        chars += sum(len(one.document) for one in parsed[subject])
        if chars > MAX_FOLLOWED_CHARS:
            return {}
    return {name: shape_of(one for subject in sorted(its) for one in parsed[subject]) for name, its in subjects.items()}


def _followed(subject_id: str) -> list[ParsedSchema]:
    """Return the versions whose events ingest accepts: the newest, and earlier ones of Avro, as events name theirs."""
    rows = SubjectVersion.objects.filter(subject=subject_id).order_by("-number").select_related("schema")
    found = [
        ParsedSchema(SchemaType(row.schema.type), row.schema.document, "", "", None, (), row.schema.document)
        for row in rows[:MAX_FOLLOWED]
    ]
    return [one for place, one in enumerate(found) if place == 0 or one.type is SchemaType.AVRO]
