"""Parse the schemas that a registry accepts. Pure.

Registration bounds everything that later runs for each event: bytes, levels and parts with each reference expanded.
"""

import hashlib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from dataplane.schemas.avro import canonical_form, document_of, parse_avro
from dataplane.schemas.json_documents import expanded_json
from dataplane.schemas.types import ParsedSchema, SchemaRejectedError, SchemaType

MAX_DOCUMENT_BYTES: Final = 256 * 1024  # with every reference expanded
_NONE: Final[Mapping[str, ParsedSchema]] = MappingProxyType({})
_UNSUPPORTED: Final = {"PROTOBUF": "Protobuf schemas are not supported: needs AVRO or JSON"}


def schema_type(name: str | None) -> SchemaType:
    """Return the type that a request names; Avro if it names none. Raises SchemaRejectedError for other languages."""
    try:
        return SchemaType(name or SchemaType.AVRO)
    except ValueError as exc:
        reason = _UNSUPPORTED.get(str(name), "unknown type of schema: needs AVRO or JSON")
        raise SchemaRejectedError("/schemaType", reason) from exc


def parse(
    type: SchemaType,  # noqa: A002  # the word of Confluent's API
    text: str,
    references: Mapping[str, ParsedSchema] = _NONE,
) -> ParsedSchema:
    """Return a valid schema with its canonical form and fingerprint.

    references: the schemas that the text may refer to; of Avro by any name (their types are referred to by full name),
    of JSON Schema by the text of the `$ref`. Raises SchemaRejectedError.
    """
    for reference, other in references.items():
        if other.type is not type:
            raise SchemaRejectedError("", f"the reference {reference} needs a schema of type {type}, not {other.type}")
    documents = {name: other.document for name, other in references.items()}
    name: str | None = None
    if type is SchemaType.JSON:
        document, used = expanded_json(text, documents)
        canonical = document
    else:
        tree, used = parse_avro(text, documents)
        document, canonical, name = document_of(tree), canonical_form(tree), tree.name or None
    if len(document.encode()) > MAX_DOCUMENT_BYTES:
        raise SchemaRejectedError("", f"needs at most {MAX_DOCUMENT_BYTES} bytes, with every reference expanded")
    fingerprint = hashlib.sha256(canonical.encode()).hexdigest()
    return ParsedSchema(type, text, canonical, fingerprint, name, used, document)
