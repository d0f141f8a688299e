"""Drafts of versions: a schema that is to be checked or registered, and the subject for an incompatible one. Pure."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final, NamedTuple

import msgspec

from dataplane.schemas.compatibility import suggested_name
from dataplane.schemas.types import SchemaRejectedError, SchemaType
from dataplane.spec.schema import MAX_BYTES

MAX_TEXT_BYTES: Final = MAX_BYTES
MAX_REFERENCES: Final = 50  # of one schema
MAX_NAME: Final = 255
_TOPIC_SUBJECT: Final = re.compile(r"(?P<topic>.+)-(?P<part>key|value)")
_GENERATION: Final = re.compile(r"(?P<base>.+)\.v(?P<number>[1-9][0-9]{0,3})")


class SchemaReference(NamedTuple):
    """Reference to a version of another subject, under the name by which the schema uses it."""

    name: str
    subject: str
    version: int


@dataclass(frozen=True)
class SchemaDraft:
    """Schema as a client sends it."""

    type: SchemaType
    text: str
    references: tuple[SchemaReference, ...] = ()


def check_text(draft: SchemaDraft) -> None:
    """Raise SchemaRejectedError for a draft that is too large, or that Postgres cannot store."""
    try:
        size = len(draft.text.encode())
    except UnicodeEncodeError as exc:
        raise SchemaRejectedError("", "contains an unpaired surrogate") from exc
    if size > MAX_TEXT_BYTES:
        raise SchemaRejectedError("", f"needs at most {MAX_TEXT_BYTES} bytes, got {size}")
    if "\x00" in draft.text:
        raise SchemaRejectedError("", "contains the character U+0000")
    if len(draft.references) > MAX_REFERENCES:
        raise SchemaRejectedError("/references", f"needs at most {MAX_REFERENCES}, got {len(draft.references)}")
    for number, one in enumerate(draft.references):
        for key, value in (("name", one.name), ("subject", one.subject)):
            if not 1 <= len(value) <= MAX_NAME or not value.isprintable():
                raise SchemaRejectedError(f"/references/{number}/{key}", f"needs 1-{MAX_NAME} printable characters")


def digest_of(kind: SchemaType, normal: str, references: Iterable[SchemaReference]) -> str:
    """Return the SHA-256 that identifies a schema within its tenant."""
    parts = [kind.value, normal, sorted(references)]
    return sha256(msgspec.json.encode(parts)).hexdigest()


def as_json(references: Iterable[SchemaReference]) -> list[dict[str, Any]]:
    """Return references as the API and the rows have them."""
    return [one._asdict() for one in references]


def from_json(references: Iterable[Mapping[str, Any]]) -> tuple[SchemaReference, ...]:
    """Return references from a row."""
    return tuple(SchemaReference(one["name"], one["subject"], one["version"]) for one in references)


def next_subject(subject: str, name: str) -> str:
    """Return the subject under which a breaking change may be registered: the next generation of `subject`.

    `name`: full name of the schema's type. A subject that is named after its type gets that of the type's next
    generation; the subject of a topic gets that of the next topic: `orders-value` becomes `orders.v2-value`.
    """
    if name and subject.endswith(name):
        return subject.removesuffix(name) + suggested_name(name)
    if found := _TOPIC_SUBJECT.fullmatch(subject):
        return f"{_next(found['topic'])}-{found['part']}"
    return _next(subject)


def _next(name: str) -> str:
    if found := _GENERATION.fullmatch(name):
        return f"{found['base']}.v{int(found['number']) + 1}"
    return f"{name}.v2"
