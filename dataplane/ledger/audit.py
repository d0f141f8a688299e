"""Audit and attempt records, which writers produce at each checkpoint, as MessagePack.

Every audit record of a cell is sent to one partition (key = cell), so the Observer reads a cell's checkpoints in the
order in which they were acknowledged: when it reads that an input is settled up to an offset, it has already read every
fact below that offset.
"""

from typing import Final

import msgspec
from msgspec import Struct

from dataplane.ledger.fields import FieldObservation
from dataplane.ledger.rejections import RejectionReport
from dataplane.ledger.sequence_breaks import SequenceBreak
from dataplane.ledger.usage import UsageReport
from dataplane.ledger.version_traffic import VersionTraffic

AUDIT_VERSION: Final = 1


class FactSet(Struct, array_like=True, frozen=True):
    """Set of units of one (pipe, node, bucket) for which one fact holds.

    node:      `ingest`, `log` (the ingest topic), `dedup`, `process` (passed every stage of process up to route),
               `normalize`, `enrich`, `route`, `transform:<d>`, `transmit:<d>`, `window:<w>`, `sequence:<source>`
    bucket:    minutes since the epoch, as stamped at ingest
    fact:      see dataplane.ledger.facts.Fact
    detail:    ingest sent: `acked` | `seen`; log sent: these with `/<producer>`, or `reused`;
               dedup sent: `asked` | `judged`; duplicate: the first's position;
               normalize sent: `exploded` | `slow` (to the slow lane); window sent: `late`;
               sequence sent: `checked` | `gap` | `out-of-order` | `repeated`;
               dead: its cause, for a redriven unit `<cause>/<round of the last redrive>`; filtered: `filter` (a step) |
               `empty` (exploded to nothing) | `unrouted`;
               parked, held, released and redriven: the round ("1", "2", ...); else ""
    child:     number of a message that an explode made, 0 for all others
    positions: a serialized 64-bit roaring bitmap of positions (dataplane.ledger.units)
    """

    pipe: str
    node: str
    bucket: int
    fact: str
    detail: str
    child: int
    positions: bytes


class LagSet(Struct, array_like=True, frozen=True):
    """Timing of the messages of one (pipe, bucket) that left one node, as sketches in microseconds.

    The three sets of a node cover the same messages; an earlier release sends "in" and "out" of different messages, and
    no "own".

    way:       kind of timing: `in` (lag on arrival: now - event_time, signed), `out` (lag on departure), `own` (process
               duration, from arrival to departure)
    breakdown: with `out` of the node that delivers, the breakdown of these messages' time
               (dataplane.ledger.breakdown); else b""
    """

    pipe: str
    node: str
    bucket: int
    way: str
    sketch: bytes
    breakdown: bytes = b""


class OffsetMark(Struct, array_like=True, frozen=True):
    """Offset of a topic partition. As input, every offset below is settled; as output, the highest offset written."""

    topic: str
    partition: int
    offset: int


class AuditRecord(Struct, array_like=True, frozen=True):
    """One checkpoint of one writer (a lane such as `process-0`, or an ingest replica such as `ingest-1`).

    A report that is too large for one record is split (dataplane.ledger.report_parts): `inputs` are in the last part.

    usage:      in some records, the writer's usage since its last report; from ingest in separate records, with cell ""
    fields:     in some records of process, the fields in a sample of the messages
    run:        id of the writer's start, "" if the writer does not number its records
    sequence:   number of the record among the run's records for this cell, from 1, in the order in which they are
                stored; a record that is sent again keeps its number, so lags and counts are added once
    rejections: in some records of ingest with cell "", the events that did not pass its checks
    traffic:    in some records of ingest with cell "", the events by schema version
    breaks:     in some records of the sequence query, places where the sequence of a key is broken
    """

    version: int
    cell: str
    writer: str
    kind: str  # a LaneKind, "ingest" or a query
    at_us: int
    inputs: list[OffsetMark]
    outputs: list[OffsetMark]
    facts: list[FactSet]
    lags: list[LagSet]
    usage: UsageReport | None = None
    fields: list[FieldObservation] = []
    run: str = ""
    sequence: int = 0
    rejections: list[RejectionReport] = []
    traffic: list[VersionTraffic] = []
    breaks: list[SequenceBreak] = []


class AttemptRecord(Struct, array_like=True, frozen=True):
    """One attempt to deliver one message to one destination; times in microseconds, `status` 0 without a response.

    outcome:     `delivered` | `retry` (again at once) | `parked` (later, from `next_us`) | `dead` | `cancelled`
    answer:      the first 512 bytes of the answer's body as printable text, secrets masked
    gives_up_us: end of the destination's retry horizon for this message; 0 if the message has ended
    """

    message_id: str
    position: int
    pipe: str
    revision: int
    destination: str
    bucket: int
    number: int
    started_us: int
    dns_us: int
    connect_us: int
    tls_us: int
    first_byte_us: int
    total_us: int
    status: int
    outcome: str
    reason: str
    address: str
    next_us: int
    answer: str = ""
    gives_up_us: int = 0


class AttemptBatch(Struct, array_like=True, frozen=True):
    """Attempts of one checkpoint, as one record on the cell's `attempts` topic.

    `attempts` has every failure, and at most a sample of the successes; `delivered` is the number of all successes.
    """

    version: int
    cell: str
    writer: str
    delivered: int
    attempts: list[AttemptRecord]


_audit = msgspec.msgpack.Decoder(AuditRecord)
_attempts = msgspec.msgpack.Decoder(AttemptBatch)
_encoder = msgspec.msgpack.Encoder()


def encode(message: AuditRecord | AttemptBatch) -> bytes:
    """Return the record as MessagePack."""
    return _encoder.encode(message)


def decode_audit(value: bytes) -> AuditRecord:
    """Decode an audit record. Raises msgspec.DecodeError if `value` is none."""
    return _audit.decode(value)


def decode_attempts(value: bytes) -> AttemptBatch:
    """Decode a batch of attempts. Raises msgspec.DecodeError if `value` is none."""
    return _attempts.decode(value)
