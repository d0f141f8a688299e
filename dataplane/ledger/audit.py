"""What a node tells the ledger at each checkpoint: one audit record for all its pipes, as MessagePack.

Every audit record of a cell goes to one partition (key = cell), so the Observer reads a cell's checkpoints in the
order they were acknowledged: when it sees an input settled up to some offset, it has already seen every fact below.
"""

from typing import Final

import msgspec
from msgspec import Struct

from dataplane.ledger.fields import FieldSample
from dataplane.ledger.usage import Usage

AUDIT_VERSION: Final = 1


class FactSet(Struct, array_like=True, frozen=True):
    """Some units of one (pipe, node, bucket) about which one fact holds.

    node:      `ingest`, `log` (the ingest topic), `dedup`, `process` (passed every stage of process up to route),
               `normalize`, `enrich`, `route`, `transform:<d>`, `transmit:<d>`, `window:<w>`
    bucket:    minutes since the epoch, as stamped at ingest
    fact:      see dataplane.ledger.facts.Fact
    detail:    ingest sent: `acked` | `seen`; log sent: these with `/<producer>`, or `reused`;
               dedup sent: `asked` | `judged`; duplicate: the first's position;
               normalize sent: `exploded` | `slow` (to the slow lane); window sent: `late`;
               dead: its cause, in a later life `<cause>/<round it began in>`; filtered: `filter` (a step) |
               `empty` (exploded to nothing) | `unrouted`;
               parked, held, released and redriven: the round ("1", "2", ...); else ""
    child:     ordinal of an exploded message, 0 for all others
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

    The three sets of a node are of the same messages; an earlier release sends "in" and "out" of different ones, and no
    "own".

    way:       `in` (lag on arrival: now - event_time, signed), `out` (lag on departure), `own` (from the one to the
               other: process duration)
    breakdown: with `out` of the node that delivers, where the time of these messages went
               (dataplane.ledger.breakdown); else b""
    """

    pipe: str
    node: str
    bucket: int
    way: str
    sketch: bytes
    breakdown: bytes = b""


class Mark(Struct, array_like=True, frozen=True):
    """A place in a topic partition. As input: every offset below is settled. As output: the highest offset written."""

    topic: str
    partition: int
    offset: int


class Audit(Struct, array_like=True, frozen=True):
    """One checkpoint of one writer (a lane such as `process-0`, or an ingest replica such as `ingest-1`).

    A report that is too large for one record is split (dataplane.ledger.report_parts): `inputs` are in the last part.

    usage:    now and then, what the writer spent since it said so last; of ingest in records of their own, for cell ""
    fields:   now and then, of process, what it saw of fields in a sample of the messages
    run:      the start of the writer that produced the record, "" if it numbers none
    sequence: of the run's records for this cell, from 1, in the order in which they are stored; one that is sent again
              keeps its number, so lags and usage are counted once
    """

    version: int
    cell: str
    writer: str
    kind: str  # a LaneKind, "ingest" or a query
    at_us: int
    inputs: list[Mark]
    outputs: list[Mark]
    facts: list[FactSet]
    lags: list[LagSet]
    usage: Usage | None = None
    fields: list[FieldSample] = []
    run: str = ""
    sequence: int = 0


class Attempt(Struct, array_like=True, frozen=True):
    """One try of one message at one destination; times in microseconds, `status` 0 when no answer came.

    outcome:     `delivered` | `retry` (again at once) | `parked` (later, from `next_us`) | `dead` | `cancelled`
    answer:      the first 512 bytes of the answer's body as printable text, secrets masked
    gives_up_us: when the destination's span for this message is over; 0 if it has ended
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


class Attempts(Struct, array_like=True, frozen=True):
    """The attempts of one checkpoint, one record on the cell's `attempts` topic.

    Every failure is there; of the successes at most a sample, `delivered` says how many there were in all.
    """

    version: int
    cell: str
    writer: str
    delivered: int
    attempts: list[Attempt]


_audit = msgspec.msgpack.Decoder(Audit)
_attempts = msgspec.msgpack.Decoder(Attempts)
_encoder = msgspec.msgpack.Encoder()


def encode(message: Audit | Attempts) -> bytes:
    """The record as MessagePack."""
    return _encoder.encode(message)


def decode_audit(value: bytes) -> Audit:
    """Raises msgspec.DecodeError if `value` is no audit record."""
    return _audit.decode(value)


def decode_attempts(value: bytes) -> Attempts:
    """Raises msgspec.DecodeError if `value` is no attempts record."""
    return _attempts.decode(value)
