"""`AvroEncoding`: the events of a destination are delivered as Avro in place of JSON."""

from typing import Annotated, Literal

from msgspec import Meta, Struct


class AvroEncoding(Struct, forbid_unknown_fields=True, frozen=True):
    """Avro, with one version of a subject of your schema registry. Without an encoding, events are delivered as JSON.

    format: `avro` (binary Avro; headers name the schema), or `confluent` (preceded by 0x00 and the id of the schema in
            4 bytes, as Confluent's deserializers read it)
    """

    format: Literal["avro", "confluent"]
    subject: Annotated[str, Meta(min_length=1, max_length=255)]
    version: Annotated[int, Meta(ge=1, le=2_147_483_647)]
