"""Bodies and error codes of the wire API of Confluent's Schema Registry.

Only fields that Confluent documents are sent, because old Java clients refuse unknown ones.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.http import JsonResponse
from rest_framework.exceptions import APIException

from dataplane.schemas.parse import schema_type
from dataplane.schemas.types import Compatibility, Incompatibility, SchemaType
from mgmt.models import SchemaText, SubjectVersion
from mgmt.registry.drafts import SchemaDraft, SchemaReference
from mgmt.registry.queries import LATEST

MEDIA_TYPES: Final = (
    "application/vnd.schemaregistry.v1+json",
    "application/vnd.schemaregistry+json",
    "application/json",
)
MAX_NUMBER: Final = 2**31 - 1
_TRUE: Final = ("true", "1", "yes")


class WireError(APIException):
    """Error of the wire API. `error_code`: code that Confluent documents; its first three digits are the status."""

    def __init__(self, error_code: int, message: str) -> None:
        super().__init__(message)
        self.error_code = error_code
        self.status_code = int(str(error_code)[:3])


def error_response(error_code: int, message: str) -> JsonResponse:
    """Return an error for a request that reached no view of the wire API."""
    body = {"error_code": error_code, "message": message}
    return JsonResponse(body, status=int(str(error_code)[:3]), content_type=MEDIA_TYPES[0])


def subject_not_found(name: str) -> WireError:
    """Return the error for a subject without versions."""
    return WireError(40401, f"Subject '{name}' not found.")


def version_not_found(number: int) -> WireError:
    """Return the error for a missing version of a subject that exists."""
    return WireError(40402, f"Version {number} not found.")


def schema_not_found(number: int | None = None) -> WireError:
    """Return the error for a schema, by its id if it was asked for by id."""
    return WireError(40403, f"Schema {number} not found" if number else "Schema not found")


def level_not_set(name: str) -> WireError:
    """Return the error for a subject without a level of its own."""
    return WireError(40408, f"Subject '{name}' does not have subject-level compatibility configured")


def never_deleted(what: str) -> WireError:
    """Return the error for every deletion."""
    return WireError(
        42205,
        f"{what} cannot be deleted: events that were written with a schema must stay readable. Deprecate it instead, "
        "on the page Schemas of the console or with PATCH /api/v1/schemas/{id}/.",
    )


def incompatible(subject: str, broken: Sequence[Incompatibility], suggested: str) -> WireError:
    """Return the error for an incompatible registration, which names every place and the subject that is offered."""
    details = "; ".join(f"version {one.version}, {one.path or '/'}: {one.message}" for one in broken)
    return WireError(
        409,
        f'Schema being registered is incompatible with an earlier schema for subject "{subject}", details: '
        f"[{details}]. To make this change, register it as {suggested}.",
    )


def number_of_version(text: str) -> int:
    """Return the number in a path; LATEST for `latest` and -1. Raises WireError 42202."""
    if text in ("latest", "-1"):
        return LATEST
    if text.isascii() and text.isdigit() and len(text) <= 10 and 1 <= int(text) <= MAX_NUMBER:
        return int(text)
    raise WireError(
        42202,
        f"The specified version '{text[:40]}' is not a valid version id. Allowed values are between [1, 2^31-1] and "
        'the string "latest"',
    )


def level_in(body: Mapping[str, Any]) -> Compatibility:
    """Return the level of a configuration. Raises WireError 42203."""
    text = body.get("compatibility", body.get("compatibilityLevel"))
    try:
        return Compatibility(text.upper() if isinstance(text, str) else "")
    except ValueError as exc:
        levels = ", ".join(Compatibility)
        raise WireError(42203, f"Invalid compatibility level. Valid values are {levels}") from exc


def draft_in(body: Any) -> SchemaDraft:
    """Return the schema of a request. `metadata`, `ruleSet`, `id` and `version` are accepted and ignored.

    Raises WireError for a malformed body, SchemaRejectedError for another type.
    """
    if not isinstance(body, dict):
        raise WireError(422, "The request body must be a JSON object")
    kind, text = body.get("schemaType"), body.get("schema")
    if not isinstance(text, str) or not text.strip():
        raise WireError(42201, "Empty schema")
    references = body.get("references") or []
    if not isinstance(references, list):
        raise WireError(42201, "references must be a list")
    return SchemaDraft(schema_type(None if kind is None else str(kind)), text, tuple(map(_reference_in, references)))


def _reference_in(given: Any) -> SchemaReference:
    match given:
        case {"name": str(name), "subject": str(subject), "version": int(number)} if number == LATEST or (
            1 <= number <= MAX_NUMBER
        ):
            return SchemaReference(name, subject, number)
    raise WireError(42201, "Each reference needs name, subject and version")


def version_out(version: SubjectVersion) -> dict[str, Any]:
    """Return the body of a version of a subject."""
    schema = version.schema
    head = {"subject": version.subject.name, "version": version.number, "id": schema.number}
    return head | schema_out(schema)


def schema_out(schema: SchemaText) -> dict[str, Any]:
    """Return the body of a schema. The type is omitted for Avro, and references if there are none."""
    found: dict[str, Any] = {"schema": schema.text}
    if schema.type != SchemaType.AVRO:
        found["schemaType"] = schema.type
    if schema.references:
        found["references"] = schema.references
    return found


def verbose_messages(broken: Sequence[Incompatibility], texts: Mapping[int, str], level: Compatibility) -> list[str]:
    """Return the messages of a verbose check, in Confluent's form: one for each place, then version, schema, level."""
    messages = [
        f"{{errorType:'{one.reason}', description:'{one.message}', additionalInfo:'path: {one.path or '/'}, "
        f"reader: {one.reader}, writer: {one.writer}'}}"
        for one in broken
    ]
    for number in sorted({one.version for one in broken if one.version}):
        messages += [f"{{oldSchemaVersion: {number}}}", f"{{oldSchema: '{texts.get(number, '')}'}}"]
    return [*messages, f"{{compatibility: '{level}'}}"] if messages else []


def is_true(text: str | None) -> bool:
    """Return True for a query parameter that is set; Python clients send `True`."""
    return (text or "").lower() in _TRUE
