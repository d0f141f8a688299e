"""A message's journey: the stored original, the result of each stage, its destinations, attempts, times and bins.

None of it is stored for this purpose. The original is on the ingest topic at its position, the same plan recomputes
the stages, times come from the brokers and the attempts, and bins from the ledger.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any, Final

import msgspec

from dataplane.ledger.bins import BucketFacts
from dataplane.ledger.facts import Fact, FactKey
from dataplane.ledger.meta import read_meta
from dataplane.ledger.trace import bins_of, facts_in_order
from dataplane.ledger.units import place_of
from dataplane.names import transform_node, transmit_node
from dataplane.plan.dryrun import OutboundRequest
from mgmt.cells.queries.cells import topic_at, topics_of
from mgmt.deliveries.queries.attempts import AttemptLine, attempts_of
from mgmt.ledger.queries.ledger import MinuteKey, books_of
from mgmt.messages.queries.recompute import Recomputation, RecomputedStage, RuleResult
from mgmt.messages.queries.records import (
    ForeignRecordError,
    RecordUnavailableError,
    StoredRecord,
    read_record,
    records_since,
)
from mgmt.messages.queries.report_times import report_times_of
from mgmt.models import DeadLetter, Pipe

MOST_TRIES: Final = 500
MOST_BYTES: Final = 2 * 1024 * 1024  # largest record of an ingest topic


class MessageNotFoundError(Exception):
    """The pipe has no message at the position."""


@dataclass(frozen=True)
class JourneyLeg:
    """Path of a message to one destination. `left_at`: time at which the broker stored the output of its transform.

    reported_at: time at which each fact was first reported
    """

    destination: str
    bin: str
    facts: list[FactKey]
    reported_at: Mapping[FactKey, datetime]
    attempts: list[AttemptLine]
    left_at: datetime | None = None
    transform: RecomputedStage | None = None
    request: OutboundRequest | None = None
    letter: DeadLetter | None = None


@dataclass(frozen=True)
class Journey:
    """Journey of one unit. `record` is None if the original cannot be read; `unavailable` is the reason."""

    position: int
    child: int
    message_id: str
    bucket: int
    bin: str  # of a unit that ended, waits or is lost before the route; "" if it passed the route
    facts: list[FactKey]
    legs: list[JourneyLeg]
    record: StoredRecord | None = None
    unavailable: str = ""
    revision: int = 0
    stages: list[RecomputedStage] = field(default_factory=list)
    rules: list[RuleResult] = field(default_factory=list)
    not_sent_to: list[str] = field(default_factory=list)
    children: int = 0


def message_journey(pipe: Pipe, position: int, *, child: int = 0, bucket: int | None = None) -> Journey:
    """Return the journey of a pipe's message. Raises MessageNotFoundError.

    bucket: used if neither the original nor another row gives the message's bucket
    """
    record, unavailable = original(pipe, position)
    rows = _Rows(pipe, position, child)
    found = record.meta.bucket if record else rows.bucket or bucket
    if found is None:
        raise MessageNotFoundError(unavailable)
    books = books_of([MinuteKey(pipe.id, found)])[MinuteKey(pipe.id, found)]
    bins = bins_of(books, position, child)
    if record is None and not bins:
        raise MessageNotFoundError(unavailable)
    unit = _Unit(pipe, position, child, record, books)
    recomputed = Recomputation(pipe, record, position, child) if record else None
    id_ = recomputed.id if recomputed else rows.message_id
    attempts = [line for line in rows.attempts if line.message_id == id_]
    names = {*bins, *(line.destination for line in attempts), *(recomputed.due if recomputed else ())} - {""}
    reported_at = _reported_at(unit, names, attempts)
    left_at = _departures(unit, names)
    return Journey(
        position=position,
        child=child,
        message_id=id_,
        bucket=found,
        bin=str(bins.get("", "")),
        facts=facts_in_order(books, position, child, ""),
        legs=[
            JourneyLeg(
                destination=name,
                bin=str(bins.get(name, "")),
                facts=_facts_at(unit, name),
                reported_at=reported_at,
                attempts=[line for line in attempts if line.destination == name],
                left_at=left_at.get(name),
                transform=recomputed.transform(name) if recomputed else None,
                request=recomputed.request(name) if recomputed else None,
                letter=next((row for row in rows.letters if row.destination == name), None),
            )
            for name in sorted(names)
        ],
        record=record,
        unavailable=unavailable or (recomputed.unavailable if recomputed else ""),
        revision=record.meta.revision if record else rows.revision,
        stages=recomputed.stages if recomputed else [],
        rules=recomputed.rules if recomputed else [],
        not_sent_to=sorted(set(recomputed.destinations) - names) if recomputed else [],
        children=recomputed.children if recomputed else 0,
    )


class _Rows:
    """Attempts and dead letters of a message, from Postgres."""

    def __init__(self, pipe: Pipe, position: int, child: int) -> None:
        self.attempts = attempts_of(pipe_id=pipe.id, position=position, most=MOST_TRIES)
        letters = DeadLetter.objects.filter(pipe_id=pipe.id, position=position, child=child)
        self.letters = list(letters.order_by("-id"))
        known = self.attempts[0] if self.attempts else next(iter(self.letters), None)
        self.bucket = known.bucket if known else None
        self.message_id = known.message_id if known else ""
        self.revision = known.revision if known else 0


@dataclass(frozen=True)
class _Unit:
    pipe: Pipe
    position: int
    child: int
    record: StoredRecord | None
    books: BucketFacts


def original(pipe: Pipe, position: int) -> tuple[StoredRecord | None, str]:
    """Return the message as it was received, or None and the reason why it cannot be read.

    Raises MessageNotFoundError if the position holds a message of another pipe.
    """
    place = place_of(position)
    topic = topic_at(pipe.id, "ingest", place.generation)
    if topic is None:
        return None, "its topic no longer exists"
    try:
        record = read_record(topic.name, place.partition, place.offset, pipes=(pipe.id,), most_bytes=MOST_BYTES)
    except ForeignRecordError as exc:
        raise MessageNotFoundError(str(exc)) from exc
    except RecordUnavailableError as exc:
        return None, str(exc)
    return record, ""


def _facts_at(unit: _Unit, destination: str) -> list[FactKey]:
    """Return the unit's facts at one destination."""
    known = facts_in_order(unit.books, unit.position, unit.child, destination)
    return [key for key in known if key.node in (transform_node(destination), transmit_node(destination))]


def _reported_at(unit: _Unit, names: Iterable[str], attempts: Iterable[AttemptLine]) -> dict[FactKey, datetime]:
    """Return the report times of the facts that no attempt covers."""
    by_attempts = {(line.destination, line.outcome) for line in attempts}
    unreported = {
        key
        for name in names
        for key in _facts_at(unit, name)
        if key.fact != Fact.SENT and (name, key.fact) not in by_attempts
    }
    if unit.record is None or unit.record.stored_at is None:
        return {}
    try:
        return report_times_of(unit.pipe.id, unit.position, unreported, unit.record.stored_at)
    except RecordUnavailableError:
        return {}  # the page then shows no times for these facts


def _departures(unit: _Unit, names: Iterable[str]) -> dict[str, datetime]:
    """Return the time at which the broker stored the message for each destination."""
    departed = {name for name in names if any(key.fact == Fact.SENT for key in _facts_at(unit, name))}
    if unit.record is None or unit.record.stored_at is None or not departed:
        return {}
    own, expected = place_of(unit.position).generation, len(departed)
    found: dict[str, datetime] = {}
    for topic in sorted(topics_of([unit.pipe.id], "egress"), key=lambda topic: topic.generation != own):
        partitions, since = range(topic.partitions), unit.record.stored_at
        try:
            records = records_since(topic.name, partitions, since, partial(_is_of, unit), most=expected - len(found))
        except RecordUnavailableError:
            return {}
        found |= {one.meta.destination: one.stored_at for one in records if one.stored_at}
        if len(found) >= expected:
            break  # only messages held on a cell that the pipe has left depart from another cell
    return found


def _is_of(unit: _Unit, message: Any) -> bool:
    """Return True if a record carries the unit itself, not a copy that a replay made of it.

    Most other records are skipped by their bytes alone, as MessagePack has one form of the position.
    """
    headers = message.headers() or []
    if not headers or b"\xcf" + unit.position.to_bytes(8, "big") not in headers[0][1]:
        return False
    try:
        meta = read_meta(headers)
    except (KeyError, msgspec.DecodeError):
        return False
    return (meta.account, meta.position, meta.child) == (unit.pipe.id, unit.position, unit.child)
