"""Types of the schema registry: kinds of schemas, levels of compatibility, and what a comparison finds. Pure."""

from dataclasses import dataclass, field
from enum import StrEnum


class SchemaType(StrEnum):
    """Language of a schema, by the name that Confluent's Schema Registry gives it."""

    AVRO = "AVRO"
    JSON = "JSON"


class Compatibility(StrEnum):
    """Rule of a subject for new versions, as in Confluent's Schema Registry.

    BACKWARD: the new version reads what the newest one wrote; FORWARD: the newest one reads what the new version
    writes; FULL: both. The TRANSITIVE levels compare with every earlier version.
    """

    NONE = "NONE"
    BACKWARD = "BACKWARD"
    BACKWARD_TRANSITIVE = "BACKWARD_TRANSITIVE"
    FORWARD = "FORWARD"
    FORWARD_TRANSITIVE = "FORWARD_TRANSITIVE"
    FULL = "FULL"
    FULL_TRANSITIVE = "FULL_TRANSITIVE"

    @property
    def transitive(self) -> bool:
        """True if a new version is compared with every earlier one."""
        return self.name.endswith("_TRANSITIVE")

    @property
    def backward(self) -> bool:
        """True if the new version must read what earlier ones wrote."""
        return self.name.startswith(("BACKWARD", "FULL"))

    @property
    def forward(self) -> bool:
        """True if earlier versions must read what the new one writes."""
        return self.name.startswith(("FORWARD", "FULL"))


class SchemaRejectedError(Exception):
    """A schema or a value is refused. `path`: JSON pointer, empty for the whole; `reason`: what is needed there."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}" if path else reason)
        self.path = path
        self.reason = reason


@dataclass(frozen=True, slots=True)
class ParsedSchema:
    """A valid schema.

    text: as registered; canonical: its canonical form, with references expanded; fingerprint: SHA-256 of the canonical
    form, in hex; name: full name of a named Avro type; references: names of the referenced schemas that it uses;
    document: the whole schema with references expanded, which also has what the canonical form leaves out.
    """

    type: SchemaType
    text: str
    canonical: str
    fingerprint: str
    name: str | None
    references: tuple[str, ...]
    document: str = field(default="", repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Incompatibility:
    """One place at which `reader` cannot read what `writer` wrote.

    path: JSON pointer into the reader's schema, with the writer's index where the writer has a union; reason: a fixed
    name, of Avro's Java SchemaCompatibility where it has one; message: the reason in English; version: number of the
    earlier version.
    """

    path: str
    reader: str
    writer: str
    reason: str
    message: str
    version: int | None = None
