"""Services of the schema registry: check and register versions, set compatibility levels and owners, deprecate.

Nothing is ever deleted: events that were written with a schema must stay readable.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import structlog
from django.db import IntegrityError, transaction

from dataplane.schemas.types import Compatibility, Incompatibility, SchemaType
from mgmt import sandbox
from mgmt.audit.services import record
from mgmt.errors import (
    InvalidValue,
    LimitReachedError,
    SchemaConflictError,
    SubjectDeprecatedError,
    VersionIncompatibleError,
)
from mgmt.models import RegistryDefault, SchemaText, Subject, SubjectVersion, Tenant, User
from mgmt.quotas.services import check_room_for_schema_version, check_room_for_subject, hold_tenant
from mgmt.registry.drafts import (
    MAX_NAME,
    SchemaDraft,
    SchemaReference,
    as_json,
    check_text,
    digest_of,
    next_subject,
)
from mgmt.registry.fields import field_at
from mgmt.registry.queries import (
    LATEST,
    SchemaClosure,
    default_level,
    find_version,
    highest_id,
    level_of,
    versions_of,
)
from mgmt.sandbox import VersionChecked

MAX_VERSIONS: Final = 500  # of one subject
MOST_NAMED: Final = 3  # incompatibilities in the sentence of a refusal; `broken` has all
TRIES: Final = 4  # of a registration that competes with others
BATCH_BYTES: Final = 256 * 1024  # of schemas that one sandbox job compares
BATCH: Final = 8  # FULL_TRANSITIVE with 800 fields takes 30 ms of CPU time per version
log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class DraftCheck:
    """Result of checking a draft for a subject.

    draft:  with its references resolved to numbers
    found:  the parsed schema
    digest: identity of the schema within the tenant
    newest: number of the newest version of the subject; 0 without one
    broken: each incompatibility with the versions that the level names
    """

    draft: SchemaDraft
    found: VersionChecked
    digest: str
    level: Compatibility
    newest: int
    broken: tuple[Incompatibility, ...]
    suggested: str

    @property
    def places(self) -> list[tuple[str, Incompatibility]]:
        """Each incompatibility with the field of the new schema, if the pointer leads into the new schema."""
        is_reader = self.draft.type is SchemaType.AVRO and not self.level.forward
        document = json.loads(self.draft.text) if is_reader else None
        return [(field_at(document, one.path), one) for one in self.broken]


class DraftIncompatibleError(VersionIncompatibleError):
    """A draft was not registered; `check` is the complete result of its check."""

    def __init__(self, message: str, check: DraftCheck) -> None:
        super().__init__(message, check.broken, check.suggested)
        self.check = check


def register_version(
    *, tenant: Tenant, subject: str, draft: SchemaDraft, author: User, owner: str = ""
) -> tuple[SubjectVersion, bool]:
    """Store a draft as the next version of a subject. Return it and True; or the equal version that exists and False.

    The subject is created with its first version. Unique constraints refuse one of two concurrent registrations,
    which is then checked against the other. `owner`: of a new subject; the author by default.
    Raises SchemaRejectedError, VersionIncompatibleError, SubjectDeprecatedError, InvalidValue, LimitReachedError,
    QuotaExceededError, SchemaConflictError, SandboxRefused.
    """
    check_subject_name(subject)
    for _ in range(TRIES):
        if known := find_same_text(tenant=tenant, subject=subject, draft=draft):
            return known, False
        check = check_draft(tenant=tenant, subject=subject, draft=draft)
        if known := _with_digest(tenant, subject, check.digest):
            return known, False
        if check.broken:
            raise _incompatible(subject, check)
        try:
            made = _store(tenant=tenant, name=subject, check=check, author=author, owner=owner)
        except IntegrityError:
            continue
        log.info("version registered", tenant=tenant.id, subject=made.subject_id, number=made.number, by=author.pk)
        return made, True
    raise SchemaConflictError("Other clients register versions of this subject at the same time. Try again.")


def find_draft(*, tenant: Tenant, subject: str, draft: SchemaDraft) -> SubjectVersion | None:
    """Return the version of the subject that has this schema. Raises SchemaRejectedError, SandboxRefused."""
    if known := find_same_text(tenant=tenant, subject=subject, draft=draft):
        return known
    resolved = _resolved(tenant, draft)
    found = _compare(tenant, resolved, Compatibility.NONE, ())
    return _with_digest(tenant, subject, digest_of(resolved.type, found.normal, resolved.references))


def find_same_text(*, tenant: Tenant, subject: str, draft: SchemaDraft) -> SubjectVersion | None:
    """Return the version that was registered with the same text and references: no parsing, for repeated calls."""
    draft = _resolved(tenant, draft)
    rows = SubjectVersion.objects.filter(
        subject__tenant=tenant, subject__name=subject, schema__type=draft.type, schema__text=draft.text
    )
    rows = rows.filter(schema__references=as_json(draft.references))
    return rows.select_related("schema", "subject").first()


def check_draft(
    *, tenant: Tenant, subject: str, draft: SchemaDraft, against: SubjectVersion | None = None
) -> DraftCheck:
    """Parse a draft and compare it at the subject's level, in a sandbox worker. Stores nothing.

    `against`: the one version to compare it with; None for those that the level names.
    Raises SchemaRejectedError, InvalidValue, SandboxRefused.
    """
    check_subject_name(subject)
    row = Subject.objects.filter(tenant=tenant, name=subject).first()
    level = level_of(row) if row else default_level(tenant.id)
    versions = list(versions_of(row)[: None if level.transitive else 1]) if row else []  # newest first
    earlier = [against] if against else versions[::-1]
    resolved = _resolved(tenant, draft)
    found = _compare(tenant, resolved, Compatibility.NONE, ())  # an invalid draft is refused before it is compared
    broken: list[Incompatibility] = []
    if level is not Compatibility.NONE:
        for batch in _batches(earlier):
            broken += _compare(tenant, resolved, level, batch).broken
    return DraftCheck(
        draft=resolved,
        found=found,
        digest=digest_of(resolved.type, found.normal, resolved.references),
        level=level,
        newest=versions[0].number if versions else 0,
        broken=tuple(broken),
        suggested=next_subject(subject, found.name),
    )


@transaction.atomic
def set_subject_compatibility(
    *, tenant: Tenant, subject: str, level: Compatibility | None, by: User | None = None
) -> Subject:
    """Set the level of a subject; None: that of the tenant applies. Creates a subject without versions if needed.

    Raises InvalidValue, QuotaExceededError.
    """
    check_subject_name(subject)
    row = Subject.objects.filter(tenant=tenant, name=subject).first()
    if row is None:
        hold_tenant(tenant.id)
        row = _subject(tenant, subject, "")
    before, row.compatibility = row.compatibility, level.value if level else ""
    row.save(update_fields=["compatibility"])
    after = {"level": row.compatibility}
    record(tenant=tenant, by=by, action="subject.level_set", target=row, before={"level": before}, after=after)
    log.info("compatibility set", tenant=tenant.id, subject=row.id, level=row.compatibility)
    return row


@transaction.atomic
def set_default_compatibility(*, tenant: Tenant, level: Compatibility, by: User | None = None) -> None:
    """Set the level of the tenant's subjects that have none of their own."""
    before, after = {"level": default_level(tenant.id)}, {"level": level}
    RegistryDefault.objects.update_or_create(tenant=tenant, defaults={"compatibility": level.value})
    record(tenant=tenant, by=by, action="registry.level_set", target=tenant, before=before, after=after)
    log.info("default compatibility set", tenant=tenant.id, level=level.value)


@transaction.atomic
def set_owner(*, subject: Subject, owner: str, by: User | None = None) -> None:
    """Set the person or team that owns a subject. Raises InvalidValue."""
    owner = owner.strip()
    if len(owner) > 80 or not owner.isprintable():
        raise InvalidValue("owner", "needs at most 80 printable characters")
    now = Subject.objects.select_for_update(no_key=True).get(id=subject.id)
    Subject.objects.filter(id=subject.id).update(owner=owner)
    before, after = {"owner": now.owner}, {"owner": owner}
    record(tenant=subject.tenant_id, by=by, action="subject.owner_set", target=subject, before=before, after=after)


@transaction.atomic
def deprecate_subject(*, subject: Subject, now: datetime, by: User | None = None) -> None:
    """Refuse new versions of a subject from now on. Existing ones are served as before."""
    if Subject.objects.filter(id=subject.id, deprecated_at=None).update(deprecated_at=now):
        record(tenant=subject.tenant_id, by=by, action="subject.deprecated", target=subject)
    log.info("subject deprecated", tenant=subject.tenant_id, subject=subject.id)


@transaction.atomic
def restore_subject(*, subject: Subject, by: User | None = None) -> None:
    """End the deprecation of a subject."""
    if Subject.objects.filter(id=subject.id).exclude(deprecated_at=None).update(deprecated_at=None):
        record(tenant=subject.tenant_id, by=by, action="subject.restored", target=subject)
    log.info("subject restored", tenant=subject.tenant_id, subject=subject.id)


@transaction.atomic
def deprecate_version(*, version: SubjectVersion, now: datetime, by: User | None = None) -> None:
    """Mark a version as deprecated. It is served, and compared with new versions, as before."""
    if SubjectVersion.objects.filter(id=version.pk, deprecated_at=None).update(deprecated_at=now):
        record(tenant=version.subject.tenant_id, by=by, action="version.deprecated", target=version)


@transaction.atomic
def restore_version(*, version: SubjectVersion, by: User | None = None) -> None:
    """End the deprecation of a version."""
    if SubjectVersion.objects.filter(id=version.pk).exclude(deprecated_at=None).update(deprecated_at=None):
        record(tenant=version.subject.tenant_id, by=by, action="version.restored", target=version)


def check_subject_name(name: str) -> None:
    """Raise InvalidValue for a name that no subject may have."""
    if not 1 <= len(name) <= MAX_NAME or not name.isprintable() or name != name.strip():
        raise InvalidValue("subject", f"needs 1-{MAX_NAME} printable characters, without spaces at the ends")


@transaction.atomic
def _store(*, tenant: Tenant, name: str, check: DraftCheck, author: User, owner: str) -> SubjectVersion:
    """Store the checked draft. Raises IntegrityError if another registration was first."""
    hold_tenant(tenant.id)
    subject = _subject(tenant, name, owner or author.get_username())
    if subject.deprecated_at:
        raise SubjectDeprecatedError(
            f"{name} is deprecated since {subject.deprecated_at:%Y-%m-%d}. Use another subject, or end the deprecation."
        )
    if check.newest >= MAX_VERSIONS:
        raise LimitReachedError(f"A subject may have {MAX_VERSIONS} versions. Use a new subject.")
    check_room_for_schema_version(tenant.id)
    schema = _schema_text(tenant, check)
    made = SubjectVersion.objects.create(subject=subject, number=check.newest + 1, schema=schema, author=author)
    record(tenant=tenant, by=author, action="version.registered", target=made)
    return made


def _subject(tenant: Tenant, name: str, owner: str) -> Subject:
    row = Subject.objects.filter(tenant=tenant, name=name).first()
    if row is None:
        check_room_for_subject(tenant.id)
        row = Subject.objects.create(tenant=tenant, name=name, owner=owner[:80])
    elif owner and not row.owner:  # it was created by a call that set its level
        row.owner = owner[:80]
        row.save(update_fields=["owner"])
    return row


def _schema_text(tenant: Tenant, check: DraftCheck) -> SchemaText:
    known = SchemaText.objects.filter(tenant=tenant, digest=check.digest).first()
    if known:
        return known
    return SchemaText.objects.create(
        tenant=tenant,
        number=highest_id(tenant.id) + 1,
        type=check.draft.type,
        name=check.found.name,
        text=check.draft.text,
        canonical=check.found.canonical,
        document=check.found.document,
        fingerprint=check.found.fingerprint,
        digest=check.digest,
        references=as_json(check.draft.references),
    )


def _with_digest(tenant: Tenant, subject: str, digest: str) -> SubjectVersion | None:
    rows = SubjectVersion.objects.filter(subject__tenant=tenant, subject__name=subject, schema__digest=digest)
    return rows.select_related("schema", "subject").first()


def _resolved(tenant: Tenant, draft: SchemaDraft) -> SchemaDraft:
    """Return the draft with the numbers of references to the latest version. Raises SchemaRejectedError."""
    check_text(draft)
    return SchemaDraft(draft.type, draft.text, tuple(_numbered(tenant, one) for one in draft.references))


def _numbered(tenant: Tenant, reference: SchemaReference) -> SchemaReference:
    if reference.version != LATEST:
        return reference
    try:
        return reference._replace(version=find_version(tenant.id, reference.subject, LATEST).number)
    except SubjectVersion.DoesNotExist:
        return reference  # the closure reports it


def _batches(versions: Sequence[SubjectVersion]) -> Iterator[list[SubjectVersion]]:
    """Divide versions among sandbox jobs, so that none exceeds the limits of one job."""
    batch: list[SubjectVersion] = []
    for one in versions:
        size = sum(len(each.schema.text) for each in batch) + len(one.schema.text)
        if batch and (len(batch) >= BATCH or size > BATCH_BYTES):
            yield batch
            batch = []
        batch.append(one)
    if batch:
        yield batch


def _compare(
    tenant: Tenant, draft: SchemaDraft, level: Compatibility, earlier: Sequence[SubjectVersion]
) -> VersionChecked:
    """Parse the draft in a sandbox worker, and compare it with the earlier versions."""
    closure = SchemaClosure(tenant.id)
    places = [(one.number, closure.add(one.schema)) for one in earlier]
    closure.append(draft.type, draft.text, closure.resolve(draft.references))
    return sandbox.check_version(closure.inputs, level=level, earlier=places, owner=tenant.id)


def _incompatible(subject: str, check: DraftCheck) -> DraftIncompatibleError:
    named = "; ".join(f"{one.path or 'the schema'}: {one.message}" for one in check.broken[:MOST_NAMED])
    more = f"; and {len(check.broken) - MOST_NAMED} more" if len(check.broken) > MOST_NAMED else ""
    words = f"Incompatible with an earlier version of {subject} at level {check.level}: {named}{more}."
    return DraftIncompatibleError(f"{words} To make this change, register it as {check.suggested}.", check)
