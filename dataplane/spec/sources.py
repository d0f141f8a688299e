"""`Source`: where events enter a pipe. Paths point into the event's body; null means ours is used, or nothing read."""

from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

from dataplane.spec.names import Name
from dataplane.spec.steps import Path

# Kafka's own rule for names of topics; (?!\n): `$` alone lets a final newline pass.
TOPIC: Final = r"^[a-zA-Z0-9._-]{1,249}(?!\n)$"


class HttpSource(Struct, tag="http", tag_field="type", forbid_unknown_fields=True, frozen=True):
    """The ingest endpoint: events are posted with a key of this source."""

    event_time: Path | None = None
    key: Path | None = None
    id: Path | None = None


class KafkaSource(Struct, tag="kafka", tag_field="type", forbid_unknown_fields=True, frozen=True):
    """An existing topic on one of the Kafka clusters that the platform names; its records are read in order.

    start: where reading begins the first time; later it goes on where it was, whatever happens in between
    """

    cluster: Name
    topic: Annotated[str, Meta(pattern=TOPIC)]
    start: Literal["earliest", "latest"] = "earliest"
    event_time: Path | None = None
    key: Path | None = None
    id: Path | None = None


Source = HttpSource | KafkaSource
