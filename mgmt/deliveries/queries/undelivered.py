"""ACKed but undelivered units: dead, held, retrying or lost, by pipe, destination and cause."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from dataplane.ledger.bins import Bin, Bins, BucketAccount, BucketFacts, derive
from dataplane.ledger.facts import Fact, cause_of, life_of
from dataplane.ledger.unitset import UnitSet
from dataplane.names import transform_node, transmit_node
from mgmt.ledger.queries.bucket_range import BucketRange, start_of
from mgmt.ledger.queries.ledger import MinuteKey, books_of
from mgmt.models import DeliveryAttempt, FactRow, Pipe, Seal

_UNDELIVERED_FACTS = (Fact.DEAD, Fact.PARKED, Fact.HELD)


@dataclass(frozen=True)
class UndeliveredCause:
    """Undelivered units of one pipe and cause; `where` is a destination, or "" before one was chosen."""

    pipe_id: str
    pipe_name: str
    where: str
    bin: str
    cause: str
    count: int
    since: datetime
    reason: str = ""
    status: int = 0
    next_at: datetime | None = None

    @property
    def needs_you(self) -> bool:
        """True if nothing more happens automatically."""
        return self.bin != Bin.RETRYING


@dataclass(frozen=True)
class _Part:
    where: str
    bin: str
    cause: str
    count: int


def undelivered(*, pipes: Sequence[Pipe], span: BucketRange) -> list[UndeliveredCause]:
    """Return all causes within a range: those that need a person first, then by number of messages."""
    names = {pipe.id: pipe.name for pipe in pipes}
    sealed_losses = _sealed_losses(list(names), span)
    gathered: dict[tuple[str, str, str, str], list[tuple[int, int]]] = {}
    for minute, books in books_of(_suspects(list(names), span) | sealed_losses).items():
        for part in _parts_of(books, derive(books), lost_is_final=minute in sealed_losses):
            key = (minute.pipe_id, part.where, part.bin, part.cause)
            gathered.setdefault(key, []).append((minute.bucket, part.count))
    last = _last_attempts(list(names))
    found = [_undelivered_cause(names, key, counts, last) for key, counts in gathered.items()]
    return sorted(found, key=lambda one: (not one.needs_you, -one.count, one.pipe_name, one.where))


def _undelivered_cause(
    names: Mapping[str, str],
    key: tuple[str, str, str, str],
    counts: Sequence[tuple[int, int]],
    last: Mapping[tuple[str, str, str], DeliveryAttempt],
) -> UndeliveredCause:
    pipe_id, where, bin_, cause = key
    attempt = last.get((pipe_id, where, "parked" if bin_ == Bin.RETRYING else bin_))
    return UndeliveredCause(
        pipe_id=pipe_id,
        pipe_name=names[pipe_id],
        where=where,
        bin=bin_,
        cause=cause,
        count=sum(count for _, count in counts),
        since=start_of(min(bucket for bucket, _ in counts)),
        reason=attempt.reason if attempt else "",
        status=attempt.status if attempt else 0,
        next_at=attempt.next_at if attempt else None,
    )


def _parts_of(books: BucketFacts, account: BucketAccount, *, lost_is_final: bool) -> Iterable[_Part]:
    yield from _parts_at(books, "", account.upstream, ("normalize", "enrich", "route"), lost_is_final)
    for name, bins in account.destinations.items():
        yield from _parts_at(books, name, bins, (transform_node(name), transmit_node(name)), lost_is_final)


def _parts_at(books: BucketFacts, where: str, bins: Bins, nodes: Sequence[str], lost_is_final: bool) -> Iterable[_Part]:
    rest = bins[Bin.DEAD]
    for cause, units in _by_cause(books, nodes, Fact.DEAD):
        here = rest & units
        rest = rest - here
        if len(here):
            yield _Part(where, Bin.DEAD, cause, len(here))
    if len(bins[Bin.HELD]):  # its facts have rounds, not causes: the cause is stored with the destination
        yield _Part(where, Bin.HELD, "", len(bins[Bin.HELD]))
    if len(bins[Bin.RETRYING]):
        yield _Part(where, Bin.RETRYING, "", len(bins[Bin.RETRYING]))
    if lost_is_final and len(bins[Bin.LOST]):
        yield _Part(where, Bin.LOST, "", len(bins[Bin.LOST]))


def _by_cause(books: BucketFacts, nodes: Sequence[str], fact: Fact) -> Iterable[tuple[str, UnitSet]]:
    """Yield causes with their units, newest life first: a unit that was redriven and died again has its last cause."""
    found = [(key, positions) for key, positions in books.facts.items() if key.node in nodes and key.fact == fact]
    for key, positions in sorted(found, key=lambda item: (-life_of(item[0].detail), item[0])):
        yield cause_of(key.detail) if fact == Fact.DEAD else "", UnitSet({key.child: positions})


def _suspects(pipe_ids: Sequence[str], span: BucketRange) -> set[MinuteKey]:
    rows = FactRow.objects.filter(
        pipe_id__in=pipe_ids, bucket__range=(span.first, span.last), fact__in=[str(fact) for fact in _UNDELIVERED_FACTS]
    )
    return {MinuteKey(*row) for row in rows.values_list("pipe_id", "bucket").distinct()}


def _sealed_losses(pipe_ids: Sequence[str], span: BucketRange) -> set[MinuteKey]:
    rows = Seal.objects.filter(pipe_id__in=pipe_ids, bucket__range=(span.first, span.last), lost__gt=0)
    return {MinuteKey(*row) for row in rows.values_list("pipe_id", "bucket")}


def _last_attempts(pipe_ids: Sequence[str]) -> dict[tuple[str, str, str], DeliveryAttempt]:
    """Return the newest failed attempt of each outcome at each destination."""
    rows = DeliveryAttempt.objects.filter(pipe_id__in=pipe_ids, outcome__in=("parked", "dead"))
    keys = ("pipe_id", "destination", "outcome")
    newest = rows.order_by(*keys, "-at").distinct(*keys)
    return {(row.pipe_id, row.destination, row.outcome): row for row in newest}
