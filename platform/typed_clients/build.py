"""Build the model of a client from the schemas of its events, and write its files. Pure."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from dataplane.schemas.avro import tree_of
from dataplane.schemas.types import ParsedSchema, SchemaType
from typed_clients import go, java, python, typescript
from typed_clients.from_avro import AvroClasses
from typed_clients.from_json_schema import JsonSchemaClasses, class_name_of
from typed_clients.identifiers import ClassNames
from typed_clients.model import ClientError, ClientModel, EventClass, RecordClass, RecordRef, ScalarKind, ScalarType

Files = Mapping[str, str]  # text by path below the folder of the client
LANGUAGES: Final[Mapping[str, Callable[[ClientModel, str], Files]]] = {
    "python": python.files_of,
    "typescript": typescript.files_of,
    "java": java.files_of,
    "go": go.files_of,
}
# One name of a class in all languages.
_RESERVED: Final = python.RESERVED_CLASSES | typescript.RESERVED_CLASSES | java.RESERVED_CLASSES | go.RESERVED_CLASSES


@dataclass(frozen=True, slots=True)
class EventSchema:
    """Schema of one event type. `event_type`: "" for that of the subject's name."""

    event_type: str
    subject: str
    number: int
    schema: ParsedSchema


def model_of(schemas: Iterable[EventSchema]) -> ClientModel:
    """Return the model of a client for these event types. Raises ClientError."""
    model, names = ClientModel(), ClassNames(_RESERVED)
    avro = AvroClasses(model, names)
    for one in schemas:
        event_type = one.event_type or one.subject
        if any(known.event_type == event_type for known in model.events):
            raise ClientError(f"{event_type}: needs one subject for each event type, got two")
        if one.schema.type is SchemaType.AVRO:
            root = avro.type_of(tree_of(one.schema.document))
        else:
            document = json.loads(one.schema.document)
            root = JsonSchemaClasses(document, model, names).root(class_name_of(one.subject))
        if not isinstance(root, RecordRef):
            raise ClientError(f"{one.subject}: needs a record, or an object with properties, as the type of its events")
        if model.event_of(root.name) is not None:
            raise ClientError(f"{event_type}: its subject has the same record as another event type of the client")
        version = f"{one.subject}@{one.number}" if one.number else one.subject
        model.events.append(EventClass(event_type, version, root.name, id_field_of(model.record(root.name))))
    if not model.events:
        raise ClientError("needs at least one event type")
    return model


def id_field_of(record: RecordClass) -> str:
    """Return the field that identifies an event: the first required TimeUuid, or a required UUID `id`; "" if none."""
    for one in record.fields:
        if one.type == ScalarType(ScalarKind.TIME_UUID) and not one.is_optional:
            return one.name
    for one in record.fields:
        if one.name == "id" and one.type == ScalarType(ScalarKind.UUID) and not one.is_optional:
            return one.name
    return ""


def files_of(language: str, schemas: Iterable[EventSchema], package: str) -> Files:
    """Return the files of a client; the same schemas give the same text. Raises ClientError."""
    if language not in LANGUAGES:
        raise ClientError(f"{language}: needs one of {', '.join(LANGUAGES)}")
    return LANGUAGES[language](model_of(schemas), package)
