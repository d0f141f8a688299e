"""A message's passport: the stored original, what each stage made of it, where it went, every try, and where it is now.

Nothing of it is written down for the purpose: the original lies in the ingest topic at the place that the position
names, the same pure plan computes the stages anew, times are the brokers' and the attempts', bins are the ledger's.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any, Final

import msgspec

from dataplane.ledger.bins import Books
from dataplane.ledger.facts import Fact, FactKey
from dataplane.ledger.meta import read_meta
from dataplane.ledger.trace import bins_of, sightings
from dataplane.ledger.units import place_of
from dataplane.names import transform_node, transmit_node
from dataplane.plan.dryrun import OutboundRequest
from mgmt.models import DeadLetter, Pipe
from mgmt.queries.again import Again, RuleLine, Stage
from mgmt.queries.attempts import AttemptLine, attempts_of
from mgmt.queries.cells import topic_at, topics_of
from mgmt.queries.ledger import Minute, books_of
from mgmt.queries.records import ForeignRecord, RecordsAway, StoredRecord, read_record, records_since
from mgmt.queries.told import told_at

MOST_TRIES: Final = 500
MOST_BYTES: Final = 2 * 1024 * 1024  # what an ingest topic takes at most


class NoMessage(Exception):  # noqa: N818 named for what the caller answers
    """The pipe has had no message at that place."""


@dataclass(frozen=True)
class Leg:
    """The way to one destination. `left_at`: when the broker took what its transform made."""

    destination: str
    bin: str
    facts: list[FactKey]
    told: Mapping[FactKey, datetime]
    attempts: list[AttemptLine]
    left_at: datetime | None = None
    transform: Stage | None = None
    request: OutboundRequest | None = None
    letter: DeadLetter | None = None


@dataclass(frozen=True)
class Passport:
    """Everything known of one unit. `record` is None if the original cannot be read: `away` says why."""

    position: int
    child: int
    message_id: str
    bucket: int
    bin: str  # of what ended, waits or is lost before the route; "" if it went through
    facts: list[FactKey]
    legs: list[Leg]
    record: StoredRecord | None = None
    away: str = ""
    revision: int = 0
    stages: list[Stage] = field(default_factory=list)
    rules: list[RuleLine] = field(default_factory=list)
    not_taken: list[str] = field(default_factory=list)
    children: int = 0


def passport(pipe: Pipe, position: int, *, child: int = 0, bucket: int | None = None) -> Passport:
    """The passport of a pipe's message; `bucket` helps if its original is gone. Raises NoMessage."""
    record, away = original(pipe, position)
    rows = _Rows(pipe, position, child)
    found = record.meta.bucket if record else rows.bucket or bucket
    if found is None:
        raise NoMessage(away)
    books = books_of([Minute(pipe.id, found)])[Minute(pipe.id, found)]
    bins = bins_of(books, position, child)
    if record is None and not bins:
        raise NoMessage(away)
    unit = _Unit(pipe, position, child, record, books)
    again = Again(pipe, record, position, child) if record else None
    id_ = again.id if again else rows.message_id
    attempts = [line for line in rows.attempts if line.message_id == id_]
    names = {*bins, *(line.destination for line in attempts), *(again.due if again else ())} - {""}
    told = _told(unit, names, attempts)
    left_at = _departures(unit, names)
    return Passport(
        position=position,
        child=child,
        message_id=id_,
        bucket=found,
        bin=str(bins.get("", "")),
        facts=sightings(books, position, child, ""),
        legs=[
            Leg(
                destination=name,
                bin=str(bins.get(name, "")),
                facts=_facts_at(unit, name),
                told=told,
                attempts=[line for line in attempts if line.destination == name],
                left_at=left_at.get(name),
                transform=again.transform(name) if again else None,
                request=again.request(name) if again else None,
                letter=next((row for row in rows.letters if row.destination == name), None),
            )
            for name in sorted(names)
        ],
        record=record,
        away=away or (again.away if again else ""),
        revision=record.meta.revision if record else rows.revision,
        stages=again.stages if again else [],
        rules=again.rules if again else [],
        not_taken=sorted(set(again.destinations) - names) if again else [],
        children=again.children if again else 0,
    )


class _Rows:
    """What Postgres knows of a message beside the ledger."""

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
    books: Books


def original(pipe: Pipe, position: int) -> tuple[StoredRecord | None, str]:
    """The message as it came, or why it cannot be shown."""
    place = place_of(position)
    topic = topic_at(pipe.id, "ingest", place.generation)
    if topic is None:
        return None, "its topic is gone"
    try:
        record = read_record(topic.name, place.partition, place.offset, pipes=(pipe.id,), most_bytes=MOST_BYTES)
    except ForeignRecord as exc:
        raise NoMessage(str(exc)) from exc
    except RecordsAway as exc:
        return None, str(exc)
    return record, ""


def _facts_at(unit: _Unit, destination: str) -> list[FactKey]:
    """What the ledger knows of the unit at one destination."""
    known = sightings(unit.books, unit.position, unit.child, destination)
    return [key for key in known if key.node in (transform_node(destination), transmit_node(destination))]


def _told(unit: _Unit, names: Iterable[str], attempts: Iterable[AttemptLine]) -> dict[FactKey, datetime]:
    """When the ledger was told what no attempt says."""
    by_attempts = {(line.destination, line.outcome) for line in attempts}
    untold = {
        key
        for name in names
        for key in _facts_at(unit, name)
        if key.fact != Fact.SENT and (name, key.fact) not in by_attempts
    }
    if unit.record is None or unit.record.stored_at is None:
        return {}
    try:
        return told_at(unit.pipe.id, unit.position, untold, unit.record.stored_at)
    except RecordsAway:
        return {}  # the page says what it knows


def _departures(unit: _Unit, names: Iterable[str]) -> dict[str, datetime]:
    """When the broker took what goes to each destination."""
    departed = {name for name in names if any(key.fact == Fact.SENT for key in _facts_at(unit, name))}
    if unit.record is None or unit.record.stored_at is None or not departed:
        return {}
    own, left = place_of(unit.position).generation, len(departed)
    found: dict[str, datetime] = {}
    for topic in sorted(topics_of([unit.pipe.id], "egress"), key=lambda topic: topic.generation != own):
        places, since = range(topic.partitions), unit.record.stored_at
        try:
            records = records_since(topic.name, places, since, partial(_is_of, unit), most=left - len(found))
        except RecordsAway:
            return {}
        found |= {one.meta.destination: one.stored_at for one in records if one.stored_at}
        if len(found) >= left:
            break  # only what was held on a cell that the pipe has left departs from another
    return found


def _is_of(unit: _Unit, message: Any) -> bool:
    """Whether a record carries the unit. What is not ours is passed over by its bytes: MessagePack has one form."""
    headers = message.headers() or []
    if not headers or b"\xcf" + unit.position.to_bytes(8, "big") not in headers[0][1]:
        return False
    try:
        meta = read_meta(headers)
    except (KeyError, msgspec.DecodeError):
        return False
    return (meta.pipe, meta.position, meta.child) == (unit.pipe.id, unit.position, unit.child)
