"""Encodings of destinations: a version of a subject of the schema registry decides how events are delivered."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

EncodingSubject = Annotated[str, Meta(min_length=1, max_length=255)]
VersionNumber = Annotated[int, Meta(ge=1, le=2_147_483_647)]


class AvroEncoding(Struct, forbid_unknown_fields=True, frozen=True):
    """Avro, with one version of a subject of your schema registry. Without an encoding, events are delivered as JSON.

    format: `avro` (binary Avro; headers name the schema), or `confluent` (preceded by 0x00 and the id of the schema in
            4 bytes, as Confluent's deserializers read it)
    """

    format: Literal["avro", "confluent"]
    subject: EncodingSubject
    version: VersionNumber


class ColumnsEncoding(Struct, forbid_unknown_fields=True, frozen=True):
    """Typed columns of one version of an Avro subject of your schema registry, in addition to the JSON text.

    format: `columns`, a column `event` with a field for each field of the schema
    """

    format: Literal["columns"]
    subject: EncodingSubject
    version: VersionNumber


Encoding = AvroEncoding | ColumnsEncoding
