"""Subjects of the schema registry, their versions, and what refers to them."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from django.db.models import Count, F, Max, OuterRef, Q, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce, NullIf
from django.db.models.query import Prefetch

from dataplane.schemas.types import Compatibility, SchemaRejectedError, SchemaType
from dataplane.tables.records import RegisteredSchema
from mgmt.models import CatalogueLink, RegistryDefault, SchemaText, Subject, SubjectVersion
from mgmt.registry.drafts import SchemaReference, from_json
from mgmt.sandbox import SchemaInput
from mgmt.tenancy.row_scope import all_tenants

LATEST: Final = -1
MAX_CLOSURE: Final = 200  # schemas that one check may need
MAX_CLOSURE_BYTES: Final = 8 * 1024 * 1024  # of these schemas together; a sandbox job may have twice as much


def default_level(tenant_id: str) -> Compatibility:
    """Return the compatibility level of the tenant's subjects that have none of their own."""
    found = RegistryDefault.objects.filter(tenant=tenant_id).values_list("compatibility", flat=True).first()
    return Compatibility(found) if found else Compatibility.BACKWARD


def level_of(subject: Subject) -> Compatibility:
    """Return the level that applies to a subject: its own, or that of its tenant."""
    return Compatibility(subject.compatibility) if subject.compatibility else default_level(subject.tenant_id)


def with_figures(rows: QuerySet[Subject]) -> QuerySet[Subject]:
    """Annotate subjects with `version_count`, and with `newest_number`, `schema_type`, `level` and `changed_at`."""
    newest = SubjectVersion.objects.filter(subject=OuterRef("pk")).order_by("-number")
    default = RegistryDefault.objects.filter(tenant=OuterRef("tenant")).values("compatibility")
    return rows.annotate(
        version_count=Count("versions"),
        newest_number=Subquery(newest.values("number")[:1]),
        schema_type=Subquery(newest.values("schema__type")[:1]),
        changed_at=Subquery(newest.values("created_at")[:1]),
        level=Coalesce(NullIf(F("compatibility"), Value("")), Subquery(default), Value(Compatibility.BACKWARD.value)),
    )


def subject_names(tenant_id: str, prefix: str = "") -> list[str]:
    """Return the names of the tenant's subjects that have a version."""
    rows = Subject.objects.filter(tenant=tenant_id, name__startswith=prefix, versions__number=1)
    return list(rows.order_by("name").values_list("name", flat=True))


def versions_of(subject: Subject) -> QuerySet[SubjectVersion]:
    """Return the versions of a subject with schema and author, newest first."""
    return subject.versions.select_related("schema", "author", "subject").order_by("-number")


def shown_versions(subject: Subject, most: int, *wanted: int) -> list[SubjectVersion]:
    """Return the newest versions of a subject, and those with the `wanted` numbers, newest first."""
    rows = versions_of(subject)
    newest = list(rows[:most])
    older = [number for number in wanted if newest and 0 < number < newest[-1].number]
    return newest + (list(rows.filter(number__in=older)) if older else [])


def find_version(tenant_id: str, subject: str, number: int) -> SubjectVersion:
    """Return a version of a subject by name; the newest one for LATEST. Raises SubjectVersion.DoesNotExist."""
    rows = SubjectVersion.objects.filter(subject__tenant=tenant_id, subject__name=subject)
    rows = rows.select_related("schema", "subject")
    found = rows.order_by("-number").first() if number == LATEST else rows.filter(number=number).first()
    if found is None:
        raise SubjectVersion.DoesNotExist
    return found


def registered_schema(tenant_id: str, subject: str, number: int) -> RegisteredSchema | None:
    """Return a version of a subject as control records have it, which never changes; None if there is none."""
    try:
        return as_registered(find_version(tenant_id, subject, number))
    except SubjectVersion.DoesNotExist:
        return None


def as_registered(row: SubjectVersion) -> RegisteredSchema:
    """Return a version, with its schema, as control records have it."""
    kind = SchemaType(row.schema.type)
    return RegisteredSchema(row.schema.number, row.number, kind, row.schema.fingerprint, row.schema.document)


def open_links(tenant_id: str, now: datetime) -> QuerySet[CatalogueLink]:
    """Return the links that open a tenant's catalogue now, newest first."""
    rows = CatalogueLink.objects.filter(tenant=tenant_id, revoked_at=None, expires_at__gt=now)
    return rows.select_related("author").order_by("-created_at", "-id")


@all_tenants("link")
def shared_link(digest: str, now: datetime) -> CatalogueLink | None:
    """Return the link whose token has this digest, with its tenant; None if it is not open or does not exist."""
    rows = CatalogueLink.objects.filter(digest=digest, revoked_at=None, expires_at__gt=now)
    return rows.select_related("tenant").first()


def highest_id(tenant_id: str) -> int:
    """Return the highest id of the tenant's schemas; 0 without one."""
    return SchemaText.objects.filter(tenant=tenant_id).aggregate(highest=Max("number"))["highest"] or 0


def with_versions(rows: QuerySet[SchemaText]) -> QuerySet[SchemaText]:
    """Return the schemas with their versions."""
    return rows.prefetch_related(Prefetch("versions", SubjectVersion.objects.select_related("subject")))


def versions_with(schema: SchemaText) -> list[tuple[str, int]]:
    """Return subject and number of each version that has this schema."""
    return list(schema.versions.order_by("subject__name", "number").values_list("subject__name", "number"))


def referring_to(version: SubjectVersion) -> QuerySet[SchemaText]:
    """Return the schemas that refer to a version."""
    wanted = [{"subject": version.subject.name, "version": version.number}]
    rows = SchemaText.objects.filter(tenant=version.subject.tenant_id, references__contains=wanted)
    return rows.order_by("number")


@dataclass
class SchemaClosure:
    """Schemas of one check in the order in which they can be parsed, each once, together with their references."""

    tenant_id: str
    inputs: list[SchemaInput] = field(default_factory=list)
    _places: dict[int, int] = field(default_factory=dict)
    _size: int = 0

    def add(self, schema: SchemaText) -> int:
        """Add a stored schema and what it refers to; return its position. Raises SchemaRejectedError if too many."""
        if schema.pk not in self._places:
            references = self.resolve(from_json(schema.references))
            self._places[schema.pk] = self.append(SchemaType(schema.type), schema.text, references)
        return self._places[schema.pk]

    def resolve(self, references: Iterable[SchemaReference]) -> dict[str, int]:
        """Add the referenced schemas; return their positions by reference name. Raises SchemaRejectedError."""
        wanted = list(references)
        known = _versions_named(self.tenant_id, wanted)
        for number, one in enumerate(wanted):
            if (one.subject, one.version) not in known:
                reason = f"needs a registered version, got version {one.version} of {one.subject}"
                raise SchemaRejectedError(f"/references/{number}", reason)
        return {one.name: self.add(known[one.subject, one.version]) for one in wanted}

    def append(self, kind: SchemaType, text: str, references: dict[str, int]) -> int:
        """Add a schema whose references are resolved; return its position. Raises SchemaRejectedError if too many."""
        self._size += len(text)
        if len(self.inputs) >= MAX_CLOSURE or self._size > MAX_CLOSURE_BYTES:
            limit = f"{MAX_CLOSURE} schemas or {MAX_CLOSURE_BYTES} characters"
            raise SchemaRejectedError("", f"refers, directly and indirectly, to more than {limit}")
        self.inputs.append(SchemaInput(kind, text, references))
        return len(self.inputs) - 1


def _versions_named(tenant_id: str, references: list[SchemaReference]) -> dict[tuple[str, int], SchemaText]:
    if not references:
        return {}
    named = Q()
    for one in references:
        named |= Q(subject__name=one.subject, number=one.version)
    rows = SubjectVersion.objects.filter(named, subject__tenant=tenant_id).select_related("schema", "subject")
    return {(row.subject.name, row.number): row.schema for row in rows}
