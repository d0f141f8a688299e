"""`SourceSpec`: the sources of a pipe. Paths point into the event's body; null: ingest's own value, or none."""

from collections.abc import Collection, Iterable
from typing import Annotated, ClassVar, Final, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, field

from dataplane.spec.errors import SpecError
from dataplane.spec.names import Name
from dataplane.spec.steps import FieldPath

# Kafka's own rule for topic names; (?!\n): `$` alone lets a final newline pass.
TOPIC: Final = r"^[a-zA-Z0-9._-]{1,249}(?!\n)$"
MAX_PREFIX_CHARS: Final = 400  # a row's key has at most as many bytes (dataplane.tables.lookups)
OPERATIONAL_PATTERN: Final = r"^penstock\.([a-z_]{1,40}\.)?([a-z_]{1,40}|\*)(?!\n)$"
OperationalPattern = Annotated[str, Meta(pattern=OPERATIONAL_PATTERN)]


class HttpSource(Struct, tag="http", tag_field="type", forbid_unknown_fields=True, frozen=True):
    """The ingest endpoint: senders post events with an API key of this source.

    spread_key: distribute the events of each key over all partitions, as a key with too many events needs. They then
                have no order, so no destination may be ordered or a topic.
    sequence:   path of a number, or of a TimeUuid, that grows with each event of a key: gaps and reorderings are
                reported
    """

    event_time: FieldPath | None = None
    key: FieldPath | None = None
    id: FieldPath | None = None
    spread_key: bool | UnsetType = UNSET  # omitted unless set: earlier releases of the data plane refuse it
    sequence: FieldPath | UnsetType = UNSET


class KafkaSource(Struct, tag="kafka", tag_field="type", forbid_unknown_fields=True, frozen=True):
    """An existing topic of a Kafka cluster that the operator has configured; its records are read in order.

    start:      offset for the first read; later reads always resume at the stored offset
    spread_key: as of an HTTP source; without `key`, the keys are those of the topic's records
    sequence:   as of an HTTP source
    """

    cluster: Name
    topic: Annotated[str, Meta(pattern=TOPIC)]
    start: Literal["earliest", "latest"] = "earliest"
    event_time: FieldPath | None = None
    key: FieldPath | None = None
    id: FieldPath | None = None
    spread_key: bool | UnsetType = UNSET
    sequence: FieldPath | UnsetType = UNSET


class TableSource(Struct, tag="table", tag_field="type", forbid_unknown_fields=True, frozen=True):
    """Changes of the rows of a look-up table. The key of an event is that of its row, so changes of a row keep order.

    from:   `snapshot` sends the current rows first, `now` only later changes; a source that has begun continues
    prefix: only rows whose keys start with this
    """

    event_time: ClassVar[None] = None
    key: ClassVar[None] = None
    id: ClassVar[None] = None
    spread_key: ClassVar[UnsetType] = UNSET
    sequence: ClassVar[UnsetType] = UNSET

    table: Name
    from_: Literal["now", "snapshot"] = field(default="now", name="from")
    prefix: Annotated[str, Meta(max_length=MAX_PREFIX_CHARS)] = ""


class PenstockSource(Struct, tag="penstock", tag_field="type", forbid_unknown_fields=True, frozen=True):
    """Operational events of the tenant: what happens to its other pipes. The key of an event is the id of its pipe.

    events: the wanted types; `*` as the last part matches all types that begin with the parts before it
    """

    event_time: ClassVar[None] = None
    key: ClassVar[None] = None
    id: ClassVar[None] = None
    spread_key: ClassVar[UnsetType] = UNSET
    sequence: ClassVar[UnsetType] = UNSET

    events: Annotated[tuple[OperationalPattern, ...], Meta(min_length=1, max_length=20)] = ("penstock.*",)


SourceSpec = HttpSource | KafkaSource | TableSource | PenstockSource


def wants_event(patterns: Iterable[str], type_: str) -> bool:
    """Return True if one of a source's patterns names the type of an operational event, or a beginning of it."""
    return any(type_.startswith(one[:-1]) if one.endswith("*") else type_ == one for one in patterns)


def has_keys(source: SourceSpec) -> bool:
    """Return True if the source's events have keys: all but posted ones bring their own."""
    return source.key is not None or not isinstance(source, HttpSource)


def can_spread(source: SourceSpec) -> bool:
    """Return True if the events of a key could be distributed over all partitions, and are not yet."""
    return has_keys(source) and isinstance(source, HttpSource | KafkaSource) and not source.spread_key


def check_source(path: str, source: SourceSpec, ordered: Collection[str]) -> None:
    """Check what types cannot express. `ordered`: destinations that keep the order of a key. Raises SpecError."""
    if source.sequence:
        _check_sequence(f"{path}.sequence", source, source.sequence)
    if not source.spread_key:
        return
    if not has_keys(source):
        raise SpecError(f"{path}.spread_key", "needs `key`: events without a key are distributed already")
    if ordered:
        names = ", ".join(sorted(ordered))
        raise SpecError(
            f"{path}.spread_key", f"needs destinations without order, but {names} keeps the order of each key"
        )


def _check_sequence(path: str, source: SourceSpec, field: str) -> None:
    if field == "$" or "*" in field.split("."):
        raise SpecError(path, "needs the path of one value, without $ and *")
    if not has_keys(source):
        raise SpecError(path, "needs a key path of the source: the events of one key are compared")
    if source.spread_key:
        raise SpecError(path, "needs keys that are not spread: the events of a spread key have no order")
