"""`SourceSpec`: the sources of a pipe. Paths point into the event's body; null: ingest's own value, or none."""

from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

from dataplane.spec.names import Name
from dataplane.spec.steps import FieldPath

# Kafka's own rule for topic names; (?!\n): `$` alone lets a final newline pass.
TOPIC: Final = r"^[a-zA-Z0-9._-]{1,249}(?!\n)$"


class HttpSource(Struct, tag="http", tag_field="type", forbid_unknown_fields=True, frozen=True):
    """The ingest endpoint: senders post events with an API key of this source."""

    event_time: FieldPath | None = None
    key: FieldPath | None = None
    id: FieldPath | None = None


class KafkaSource(Struct, tag="kafka", tag_field="type", forbid_unknown_fields=True, frozen=True):
    """An existing topic of a Kafka cluster that the operator has configured; its records are read in order.

    start: offset for the first read; later reads always resume at the stored offset
    """

    cluster: Name
    topic: Annotated[str, Meta(pattern=TOPIC)]
    start: Literal["earliest", "latest"] = "earliest"
    event_time: FieldPath | None = None
    key: FieldPath | None = None
    id: FieldPath | None = None


SourceSpec = HttpSource | KafkaSource
