"""The records of the control topic: what the control plane tells the data plane.

A record's Kafka key is `record_key(record)`, its value JSON. Every record carries the version of the row it
was made from; readers keep the highest. Revocation and removal are records, never tombstones.
"""

from typing import Final, Literal, get_args

import msgspec
from msgspec import Struct

from dataplane.names import LANE_KINDS, PURPOSES, WHOLE, LaneKind, Purpose
from dataplane.spec import Destination, PipeSpec

DEAD_RATE: Final = "dead-rate"  # too many of a pipe's messages die in its steps
DEPENDENCY_MISSING: Final = "dependency-missing"  # a lane lacks what the pipe's steps need: plan, salt, table or topic


class TopicRecord(Struct, frozen=True):
    """One generation of one of a cell's topics. `topic_id` is Kafka's own id, so a topic made anew is noticed."""

    name: str
    generation: int
    partitions: int
    topic_id: str


class CellRecord(Struct, tag="cell", tag_field="kind", frozen=True):
    """A cell: its topics and the lanes it should run. An application of a lower epoch drains and ends.

    On the wire, kinds of lanes and topics that came later are in fields of their own, which releases before them skip;
    kinds that this release does not know are left out when a record is read (`encode_record`, `decode_record`).
    """

    cell: str
    version: int
    epoch: int
    lanes: dict[LaneKind, int]
    topics: dict[Purpose, TopicRecord]
    later_lanes: dict[str, int] = {}
    later_topics: dict[str, TopicRecord] = {}


class PipeRecord(Struct, tag="pipe", tag_field="kind", frozen=True):
    """A pipe's routing: where it runs and which revisions get which share (percent) of its keys.

    While a revision ramps there are two weights, its own first: what each takes is then booked apart (`ramp_node`).
    `run_as` redirects messages already stamped with a revision to another one (a rollback: {8: 7}). A paused pipe
    accepts and holds, as if every destination were paused; a closed one answers 409. `cause`: why Penstock itself has
    paused it; "" if a person did. What is paused for DEAD_RATE or DEPENDENCY_MISSING is held before its steps, in the
    latter case so that each key keeps its order. `leaving`: the cell that still works off what came before the pipe was
    moved from it; "" if there is none. `admitted`: so many percent of its keys may pass; what lies beyond them is held
    before its steps, too. `by_shares`: that share is still tried, so what passes is booked apart (`ramp_node`), also
    when it is all of them. `held_at`: the cell that lets nothing in now, because another one still has earlier messages
    of the same keys; "" if there is none.
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
    admitted: int = WHOLE
    by_shares: bool = False
    held_at: str = ""


class PlanRecord(Struct, tag="plan", tag_field="kind", frozen=True):
    """The spec of one revision; immutable, so its version is always 1."""

    pipe: str
    revision: int
    spec: PipeSpec
    version: int = 1


class KeyRecord(Struct, tag="key", tag_field="kind", frozen=True):
    """An API key by its digest (SHA-256, hex). `revoked` is final."""

    digest: str
    version: int
    pipe: str
    source: str
    revoked: bool = False


class SchemaRecord(Struct, tag="schema", tag_field="kind", frozen=True):
    """The newest schema of a source: `text` is the JSON Schema that events posted to it must fit.

    Its version is its number at the source. A release that does not know this kind takes all events, as without one.
    """

    pipe: str
    source: str
    version: int
    text: str


class DestinationRecord(Struct, tag="destination", tag_field="kind", frozen=True):
    """The current way to reach a destination; retries of old messages use it too, so that a mended URL helps them.

    to:         address, limits, rules and kind of auth, as in the live spec
    secrets:    Fernet tokens of signing secrets (`whsec_...`, or `whsk_...` for ed25519), the newest first; each signs
    credential: Fernet token of the auth's secret as JSON: {"value"} | {"password"} | {"client_secret"} |
                {"certificate", "key"}, each with the `endpoint` that it was entered for; "" if there is none
    since_us:   when it came into this state; 0 if that is not known
    table:      the id of the look-up table that it is; "" for all others
    probe:      the id of one message that goes out although the others are held: somebody asks whether it is mended
    """

    pipe: str
    name: str
    version: int
    state: Literal["active", "paused", "suspended", "removed"]
    to: Destination
    secrets: list[str]
    credential: str = ""
    since_us: int = 0
    probe: str = ""
    table: str = ""


class MoveRecord(Struct, tag="move", tag_field="kind", frozen=True):
    """Asks the cell's first retrier lane to bring messages of one destination back into transmit, in order.

    what:       `release` of held messages, `redrive` of dead ones
    offsets:    "<topic>/<partition>" -> base64 of a serialized 64-bit roaring bitmap of Kafka offsets
    rate_per_s: at most so many a second
    state:      what has been moved stays moved when the rest is aborted
    through:    what is released goes out although its destination is held: somebody chose it

    A move that is over is written again without its offsets, so that nobody carries them any longer.
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


class StopRecord(Struct, tag="stop", tag_field="kind", frozen=True):
    """Asks one incarnation of a cell's application to drain and end. Later incarnations do not heed it."""

    cell: str
    version: int
    incarnation: str


class QuotaRecord(Struct, tag="quota", tag_field="kind", frozen=True):
    """A tenant's own limits in the data plane; None leaves one to the reader's default (dataplane.tables.quotas).

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
    | KeyRecord
    | SchemaRecord
    | DestinationRecord
    | MoveRecord
    | StopRecord
    | QuotaRecord
)
# Kinds of lanes and topics that the first release with this wire version did not have: what is added goes here, too.
LATER_KINDS: Final = frozenset({"process-slow"})
# Of records, as their bytes say it.
KINDS: Final = [str(kind.__struct_config__.tag) for kind in get_args(Record)]

_decoder: msgspec.json.Decoder[Record] = msgspec.json.Decoder(Record)


def record_key(record: Record) -> str:
    """The record's key in the compacted topic."""
    match record:
        case CellRecord():
            key = f"cell/{record.cell}"
        case PipeRecord():
            key = f"pipe/{record.pipe}"
        case PlanRecord():
            key = f"plan/{record.pipe}@{record.revision}"
        case KeyRecord():
            key = f"key/{record.digest}"
        case SchemaRecord():
            key = f"schema/{record.pipe}/{record.source}"
        case DestinationRecord():
            key = f"destination/{record.pipe}/{record.name}"
        case MoveRecord():
            key = f"move/{record.move}"
        case StopRecord():
            key = f"stop/{record.cell}"
        case QuotaRecord():
            key = f"quota/{record.tenant}"
    return key


def encode_record(record: Record) -> bytes:
    """The record as JSON, for the topic and the snapshot."""
    return msgspec.json.encode(_with_later_kinds_apart(record) if isinstance(record, CellRecord) else record)


def decode_record(value: bytes) -> Record:
    """Raises msgspec.DecodeError if `value` is not a record this version understands."""
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
