"""Records of the control topic: the configuration that the control plane publishes to the data plane.

A record's Kafka key is `record_key(record)`, its value JSON. Every record carries the version of the row from which it
was made; readers keep the highest. Revocation and removal are records, never tombstones.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, get_args

import msgspec
from msgspec import Struct

from dataplane.names import ALL_KEYS_PERCENT, LANE_KINDS, PURPOSES, LaneKind, Purpose
from dataplane.schemas.types import SchemaType
from dataplane.spec import DestinationSpec, PipeSpec


class TopicRecord(Struct, frozen=True):
    """One generation of one of a cell's topics. `topic_id` is Kafka's own id, which reveals a recreated topic."""

    name: str
    generation: int
    partitions: int
    topic_id: str


class CellRecord(Struct, tag="cell", tag_field="kind", frozen=True):
    """A cell: its topics and the lanes that it should run. An application of a lower epoch drains and ends.

    On the wire, kinds of lanes and topics that were added later are in separate fields, which earlier releases skip;
    kinds that this release does not know are dropped when a record is read (`encode_record`, `decode_record`).
    """

    cell: str
    version: int
    epoch: int
    lanes: dict[LaneKind, int]
    topics: dict[Purpose, TopicRecord]
    later_lanes: dict[str, int] = {}
    later_topics: dict[str, TopicRecord] = {}


class PipeRecord(Struct, tag="pipe", tag_field="kind", frozen=True):
    """A pipe's routing: its cell, its state, and the share of its keys that each revision gets.

    state:     a paused pipe accepts events and holds messages, as if every destination were paused; a closed one
               answers 409
    weights:   (revision, percent of keys); while a revision ramps there are two, its own first, and the messages of
               each are also counted separately (`ramp_node`)
    run_as:    redirects messages already stamped with a revision to another one (a rollback: {8: 7})
    cause:     why Penstock itself has paused the pipe; "" if a person did. For `dead-rate` and `dependency-missing`,
               messages are held before the steps, in the latter case so that each key keeps its order
    leaving:   the cell that still processes messages from before the pipe was migrated from it; "" if there is none
    admitted:  percent of the keys that may pass; messages of other keys are held before the steps, too
    by_shares: the admission is still in progress, so messages are also counted separately (`ramp_node`), even at 100 %
    held_at:   the cell that admits no messages now, because another one still has earlier messages of the same keys; ""
               if there is none
    """

    pipe: str
    version: int
    tenant: str
    name: str
    cell: str
    state: Literal["active", "paused", "closed"]
    weights: list[tuple[int, int]]
    run_as: dict[int, int] = {}
    salt: str = ""
    cause: str = ""
    leaving: str = ""
    admitted: int = ALL_KEYS_PERCENT
    by_shares: bool = False
    held_at: str = ""


class PlanRecord(Struct, tag="plan", tag_field="kind", frozen=True):
    """The spec of one revision; immutable, so its version is always 1."""

    pipe: str
    revision: int
    spec: PipeSpec
    version: int = 1


class ApiKeyRecord(Struct, tag="key", tag_field="kind", frozen=True):
    """An API key by its digest (SHA-256, hex). `revoked` is final.

    expires_us: time from which ingest refuses it, microseconds since 1970; 0: never
    """

    digest: str
    version: int
    pipe: str
    source: str
    revoked: bool = False
    expires_us: int = 0


class SchemaRecord(Struct, tag="schema", tag_field="kind", frozen=True):
    """The newest schema of a source: `text` is the JSON Schema that events posted to it must fit.

    Its version is its number at the source. A release that does not know this kind takes all events, as without one.
    """

    pipe: str
    source: str
    version: int
    text: str


class RegisteredSchema(Struct, frozen=True):
    """One version of a subject.

    schema_id:   id on the wire, unique in the tenant
    number:      version of the subject
    fingerprint: SHA-256 of the canonical form, hex
    document:    the whole schema with references expanded
    """

    schema_id: int
    number: int
    type: SchemaType
    fingerprint: str
    document: str


class SubjectRecord(Struct, tag="subject", tag_field="kind", frozen=True):
    """A subject of the schema registry that a source uses: its newest versions, the newest last.

    The documents of one record have at most MAX_SUBJECT_BYTES together; older versions are left out. A release that
    does not know this kind takes all events, as without one.
    """

    tenant: str
    subject: str
    version: int
    schemas: list[RegisteredSchema]


class EventTypesRecord(Struct, tag="event-types", tag_field="kind", frozen=True):
    """Event types of a source: the subject that the events of each type must fit.

    type_from: "" (the source has one event type), "field:<path>" (a field of the event, in the path grammar of key
               paths), or "header:<name>" (a request or record header; a name such as ce-type is the CloudEvents
               attribute)
    subjects:  by event type; with type_from "" the only key is "". Without any the source takes all events
    """

    pipe: str
    source: str
    version: int
    type_from: str
    subjects: dict[str, str]


class WebhookRecord(Struct, tag="webhook", tag_field="kind", frozen=True):
    """Settings of a source that takes requests of one kind of sender at a URL of its own.

    The secret part of the URL is an API key's record. A release that does not know this kind answers 404 there.

    preset:  name in dataplane.webhooks.PRESETS
    secrets: Fernet tokens of the sender's secrets, the newest first; a request needs the signature of one
    headers: names of request headers that events keep besides those of the preset
    """

    pipe: str
    source: str
    version: int
    preset: str
    secrets: list[str] = []
    headers: list[str] = []


class DestinationRecord(Struct, tag="destination", tag_field="kind", frozen=True):
    """Current settings of a destination; retries of old messages use them too, so that a corrected URL applies to them.

    to:         address, limits, rules and kind of auth, as in the live spec
    secrets:    Fernet tokens of signing secrets (`whsec_...`, or `whsk_...` for ed25519), newest first; each signs
    credential: Fernet token of the auth's secret as JSON: {"value"} | {"password"} | {"client_secret"} |
                {"certificate", "key"} | {"secret_access_key"}, each with the `endpoint` that it was entered for; ""
                if there is none
    since_us:   when it entered this state, in microseconds since 1970; 0 if unknown
    table:      id of the look-up table, of a destination of type table; "" for all others
    schema:     the version of a subject that `to.encoding` names; None for JSON
    probe:      id of one message that is sent although the others are held, to test whether the destination works again
    """

    pipe: str
    name: str
    version: int
    state: Literal["active", "paused", "suspended", "removed"]
    to: DestinationSpec
    secrets: list[str]
    credential: str = ""
    since_us: int = 0
    probe: str = ""
    table: str = ""
    schema: RegisteredSchema | None = None


class RedriveRecord(Struct, tag="move", tag_field="kind", frozen=True):
    """Request to the cell's first retrier lane to return messages of one destination to transmit, in order.

    what:       `release` of held messages, `redrive` of dead ones
    offsets:    "<topic>/<partition>" -> base64 of a serialized 64-bit roaring bitmap of Kafka offsets
    rate_per_s: maximum rate in messages per second
    state:      messages that were already returned stay returned if the rest is aborted
    through:    released messages are sent although their destination is held, because a person chose so

    The record of a finished redrive is published again without its offsets, so that readers need not keep them.
    """

    move: str
    version: int
    cell: str
    pipe: str
    destination: str
    what: Literal["release", "redrive"]
    offsets: dict[str, str]
    rate_per_s: float
    state: Literal["running", "aborted"]
    through: bool = False


class ReplayRecord(Struct, tag="replay", tag_field="kind", frozen=True):
    """Request to the cell's driver to deliver events of a pipe's ingest topic once more.

    revision:     its plan runs; sources, steps and routes are those of its spec
    destinations: of that revision; units for others are not sent
    since_us, until_us: range of ingest times (the end is exclusive), microseconds since 1970
    bucket:       minute in which the ledger counts all units of the replay
    where:        expression over `body` and `meta`; only events for which it is true are replayed. "" for all
    keys, ids:    only events with one of these keys, or message ids; empty for all
    revisions:    only events that ingest stamped with one of these revisions; empty for all
    rate_per_s:   maximum rate in units per second, over all destinations
    rehearsal:    count only, and send nothing
    state:        `ended` for a finished or aborted replay, which readers forget

    A release that does not know this kind starts no replay.
    """

    replay: str
    version: int
    cell: str
    pipe: str
    revision: int
    destinations: list[str]
    since_us: int
    until_us: int
    bucket: int
    rate_per_s: float
    state: Literal["running", "paused", "ended"]
    where: str = ""
    keys: list[str] = []
    ids: list[str] = []
    rehearsal: bool = False
    revisions: list[int] = []


class ShadowRecord(Struct, tag="shadow", tag_field="kind", frozen=True):
    """Request to the cell's driver to run a draft over real events without sending it, and to compare.

    spec:        the draft; its steps and routes run, and its output is compared with what the pipe has sent. A
                 placeholder once the run has ended
    revision:    number of the pipe's live revision when the run began, for its cost and for what it has not sent yet
    since_us:    ingest time of the first events, microseconds since 1970
    until_us:    end of the ingest times (exclusive); 0 to follow live traffic until the run is stopped
    most_events: number of events after which it ends; 0 for no limit
    state:       `ended` for a finished or stopped run

    A release that does not know this kind starts no run.
    """

    shadow: str
    version: int
    cell: str
    pipe: str
    spec: PipeSpec
    revision: int
    since_us: int
    until_us: int
    most_events: int
    state: Literal["running", "ended"]


class StopRecord(Struct, tag="stop", tag_field="kind", frozen=True):
    """Request to one incarnation of a cell's application to drain and end. Later incarnations ignore it."""

    cell: str
    version: int
    incarnation: str


class QuotaRecord(Struct, tag="quota", tag_field="kind", frozen=True):
    """A tenant's own limits in the data plane; None means the reader's default (dataplane.tables.quotas).

    A tenant without a record has the defaults. A release that does not know this kind sets no limits.
    """

    tenant: str
    version: int
    events_per_s: int | None = None
    bytes_per_s: int | None = None
    in_flight_bytes: int | None = None
    process_weight: int | None = None


Record = (
    CellRecord
    | PipeRecord
    | PlanRecord
    | ApiKeyRecord
    | SchemaRecord
    | SubjectRecord
    | EventTypesRecord
    | WebhookRecord
    | DestinationRecord
    | RedriveRecord
    | StopRecord
    | QuotaRecord
    | ReplayRecord
    | ShadowRecord
)
MAX_SUBJECT_BYTES: Final = 512 * 1024  # of the documents in one SubjectRecord
TYPE_IN_FIELD: Final = "field:"  # before a path, in `type_from`
TYPE_IN_HEADER: Final = "header:"  # before a name, in `type_from`
# Kinds of lanes and topics that the first release with this wire version did not have; add new kinds here, too.
LATER_KINDS: Final = frozenset({"process-slow", "sequence", "bulk"})
# Kinds of records, as on the wire.
KINDS: Final = [str(kind.__struct_config__.tag) for kind in get_args(Record)]

_decoder: msgspec.json.Decoder[Record] = msgspec.json.Decoder(Record)


def cell_key(cell: str) -> str:
    """Return the key of a cell's record."""
    return f"cell/{cell}"


def pipe_key(pipe: str) -> str:
    """Return the key of a pipe's record."""
    return f"pipe/{pipe}"


def plan_key(pipe: str, revision: int) -> str:
    """Return the key of a revision's plan."""
    return f"plan/{pipe}@{revision}"


def api_key_key(digest: str) -> str:
    """Return the key of an API key's record."""
    return f"key/{digest}"


def schema_key(pipe: str, source: str) -> str:
    """Return the key of the record of a source's schema."""
    return f"schema/{pipe}/{source}"


def subject_key(tenant: str, subject: str) -> str:
    """Return the key of the record of a tenant's subject."""
    return f"subject/{tenant}/{subject}"


def event_types_key(pipe: str, source: str) -> str:
    """Return the key of the record of a source's event types."""
    return f"event-types/{pipe}/{source}"


def webhook_key(pipe: str, source: str) -> str:
    """Return the key of the record of a source's webhook settings."""
    return f"webhook/{pipe}/{source}"


def destination_key(pipe: str, name: str) -> str:
    """Return the key of a destination's record."""
    return f"destination/{pipe}/{name}"


def redrive_key(redrive: str) -> str:
    """Return the key of the record of a redrive or release."""
    return f"move/{redrive}"


def stop_key(cell: str) -> str:
    """Return the key of a cell's stop record."""
    return f"stop/{cell}"


def quota_key(tenant: str) -> str:
    """Return the key of the record of a tenant's own limits."""
    return f"quota/{tenant}"


def replay_key(replay: str) -> str:
    """Return the key of the record of a replay."""
    return f"replay/{replay}"


def shadow_key(shadow: str) -> str:
    """Return the key of the record of a shadow run."""
    return f"shadow/{shadow}"


_KEYS: Final[Mapping[type[Record], Callable[[Any], str]]] = {
    CellRecord: lambda one: cell_key(one.cell),
    PipeRecord: lambda one: pipe_key(one.pipe),
    PlanRecord: lambda one: plan_key(one.pipe, one.revision),
    ApiKeyRecord: lambda one: api_key_key(one.digest),
    SchemaRecord: lambda one: schema_key(one.pipe, one.source),
    SubjectRecord: lambda one: subject_key(one.tenant, one.subject),
    EventTypesRecord: lambda one: event_types_key(one.pipe, one.source),
    WebhookRecord: lambda one: webhook_key(one.pipe, one.source),
    DestinationRecord: lambda one: destination_key(one.pipe, one.name),
    RedriveRecord: lambda one: redrive_key(one.move),
    StopRecord: lambda one: stop_key(one.cell),
    QuotaRecord: lambda one: quota_key(one.tenant),
    ReplayRecord: lambda one: replay_key(one.replay),
    ShadowRecord: lambda one: shadow_key(one.shadow),
}


def record_key(record: Record) -> str:
    """Return the record's key in the compacted topic."""
    return _KEYS[type(record)](record)


def encode_record(record: Record) -> bytes:
    """Return the record as JSON, for the topic and the snapshot."""
    return msgspec.json.encode(_with_later_kinds_apart(record) if isinstance(record, CellRecord) else record)


def decode_record(value: bytes) -> Record:
    """Return the record in a value. Raises msgspec.DecodeError if this version cannot read it."""
    record = _decoder.decode(value)
    return _with_all_kinds(record) if isinstance(record, CellRecord) else record


def _with_later_kinds_apart(cell: CellRecord) -> CellRecord:
    return msgspec.structs.replace(
        cell,
        lanes={kind: count for kind, count in cell.lanes.items() if kind not in LATER_KINDS},
        topics={purpose: topic for purpose, topic in cell.topics.items() if purpose not in LATER_KINDS},
        later_lanes={kind: count for kind, count in cell.lanes.items() if kind in LATER_KINDS},
        later_topics={purpose: topic for purpose, topic in cell.topics.items() if purpose in LATER_KINDS},
    )


def _with_all_kinds(cell: CellRecord) -> CellRecord:
    lanes = {kind: cell.later_lanes[kind] for kind in LANE_KINDS if kind in cell.later_lanes}
    topics = {purpose: cell.later_topics[purpose] for purpose in PURPOSES if purpose in cell.later_topics}
    return msgspec.structs.replace(
        cell, lanes=cell.lanes | lanes, topics=cell.topics | topics, later_lanes={}, later_topics={}
    )
