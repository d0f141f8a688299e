"""Encoder of delivered events: JSON to Avro, by a version of a subject of the schema registry. Pure."""

from typing import Final

from dataplane.causes import Cause
from dataplane.ledger.meta import CONTENT_TYPE, Headers
from dataplane.plan.outbound import ascii_value
from dataplane.plan.stage import StageError
from dataplane.schemas.types import ParsedSchema, SchemaRejectedError, SchemaType
from dataplane.schemas.wire import confluent_framed, json_to_avro
from dataplane.spec import AvroEncoding, ColumnsEncoding, DestinationSpec, encoding_of

# Without the framing the bytes are a value of the schema; with it, only readers that know the framing can read them.
CONTENT_TYPES: Final = {"avro": b"application/avro", "confluent": b"application/octet-stream"}
SCHEMA_HEADER: Final = "penstock-schema"
FINGERPRINT_HEADER: Final = "penstock-schema-fingerprint"


def encoding_note(to: DestinationSpec) -> str:
    """Return the note on how a destination gets an event that is shown as JSON; "" if it gets JSON."""
    encoding = encoding_of(to)
    if encoding is None:
        return ""
    if isinstance(encoding, ColumnsEncoding):
        return (
            f"stored with typed columns of version {encoding.version} of {encoding.subject}; "
            "an event that does not fit is stored without them"
        )
    framing = " in Confluent's framing" if encoding.format == "confluent" else ""
    return (
        f"delivered as Avro{framing} by version {encoding.version} of {encoding.subject}; "
        "an event that does not fit becomes a dead letter"
    )


def content_type_of(to: DestinationSpec) -> Headers:
    """Return the header of the content type that a destination's encoding has; none for JSON."""
    encoding = encoding_of(to)
    return [(CONTENT_TYPE, CONTENT_TYPES[encoding.format])] if isinstance(encoding, AvroEncoding) else []


class EventEncoder:
    """Encoder of one destination. Pure, and safe to share between threads.

    headers: content type, version of the subject as `<subject>@<number>`, and fingerprint of its schema (SHA-256, hex),
             as Kafka has them
    lines:   the same as header lines of HTTP, without the content type; they begin with the name in lower case
    """

    def __init__(self, encoding: AvroEncoding, schema_id: int, fingerprint: str, document: str) -> None:
        """Take the schema that `encoding` names. `document`: the whole schema, with references expanded."""
        self._name = f"{encoding.subject}@{encoding.version}"
        self._id = schema_id if encoding.format == "confluent" else None
        self._schema = ParsedSchema(SchemaType.AVRO, document, "", fingerprint, None, (), document)
        self.headers: Headers = [
            (CONTENT_TYPE, CONTENT_TYPES[encoding.format]),
            (SCHEMA_HEADER, self._name.encode()),
            (FINGERPRINT_HEADER, fingerprint.encode()),
        ]
        self.content_type = CONTENT_TYPES[encoding.format].decode()
        self.lines = [f"{name}: {ascii_value(value)}" for name, value in self.headers[1:]]

    def __call__(self, body: bytes) -> bytes:
        """Return an event in JSON as Avro, without loss. Raises StageError `schema`, with the place and the reason."""
        try:
            payload = json_to_avro(self._schema, body)
        except SchemaRejectedError as exc:
            raise StageError(Cause.SCHEMA, f"{self._name}: {exc}") from exc
        return payload if self._id is None else confluent_framed(self._id, payload)

    def carried(self, headers: Headers) -> Headers:
        """Return a message's own headers with the content type and schema of its encoded body."""
        own = {name for name, _ in self.headers}
        return [*(header for header in headers if header[0] not in own), *self.headers]
