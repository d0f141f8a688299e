"""What was ACKed and is not delivered: units that are dead, retrying or lost, by pipe, destination and cause."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from dataplane.ledger.bins import Account, Bin, Bins, Books, derive
from dataplane.ledger.facts import Fact, cause_of, life_of
from dataplane.ledger.unitset import UnitSet
from dataplane.names import transform_node, transmit_node
from mgmt.models import Attempt, FactRow, Pipe, Seal
from mgmt.queries.ledger import Minute, books_of
from mgmt.queries.span import Span, start_of

_TROUBLE = (Fact.DEAD, Fact.PARKED, Fact.HELD)


@dataclass(frozen=True)
class Trouble:
    """Units of one pipe that did not arrive for one cause; `where` is a destination, or "" before one was chosen."""

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
        """Whether nothing more will happen by itself."""
        return self.bin != Bin.RETRYING


@dataclass(frozen=True)
class _Part:
    where: str
    bin: str
    cause: str
    count: int


def undelivered(*, pipes: Sequence[Pipe], span: Span) -> list[Trouble]:
    """All causes within a span, those that need someone first, then by number of messages."""
    names = {pipe.id: pipe.name for pipe in pipes}
    sealed_losses = _sealed_losses(list(names), span)
    gathered: dict[tuple[str, str, str, str], list[tuple[int, int]]] = {}
    for minute, books in books_of(_suspects(list(names), span) | sealed_losses).items():
        for part in _parts(books, derive(books), lost_is_final=minute in sealed_losses):
            key = (minute.pipe_id, part.where, part.bin, part.cause)
            gathered.setdefault(key, []).append((minute.bucket, part.count))
    last = _last_attempts(list(names))
    found = [_trouble(names, key, counts, last) for key, counts in gathered.items()]
    return sorted(found, key=lambda trouble: (not trouble.needs_you, -trouble.count, trouble.pipe_name, trouble.where))


def _trouble(
    names: Mapping[str, str],
    key: tuple[str, str, str, str],
    counts: Sequence[tuple[int, int]],
    last: Mapping[tuple[str, str, str], Attempt],
) -> Trouble:
    pipe_id, where, bin_, cause = key
    attempt = last.get((pipe_id, where, "parked" if bin_ == Bin.RETRYING else bin_))
    return Trouble(
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


def _parts(books: Books, account: Account, *, lost_is_final: bool) -> Iterable[_Part]:
    yield from _parts_at(books, "", account.upstream, ("normalize", "enrich", "route"), lost_is_final)
    for name, bins in account.destinations.items():
        yield from _parts_at(books, name, bins, (transform_node(name), transmit_node(name)), lost_is_final)


def _parts_at(books: Books, where: str, bins: Bins, nodes: Sequence[str], lost_is_final: bool) -> Iterable[_Part]:
    rest = bins[Bin.DEAD]
    for cause, units in _by_cause(books, nodes, Fact.DEAD):
        here = rest & units
        rest = rest - here
        if len(here):
            yield _Part(where, Bin.DEAD, cause, len(here))
    if len(bins[Bin.HELD]):  # its facts tell rounds, not causes: why it is held stands with the destination
        yield _Part(where, Bin.HELD, "", len(bins[Bin.HELD]))
    if len(bins[Bin.RETRYING]):
        yield _Part(where, Bin.RETRYING, "", len(bins[Bin.RETRYING]))
    if lost_is_final and len(bins[Bin.LOST]):
        yield _Part(where, Bin.LOST, "", len(bins[Bin.LOST]))


def _by_cause(books: Books, nodes: Sequence[str], fact: Fact) -> Iterable[tuple[str, UnitSet]]:
    """The newest life first: a unit that was brought back and died again shows what it died of at last."""
    found = [(key, positions) for key, positions in books.facts.items() if key.node in nodes and key.fact == fact]
    for key, positions in sorted(found, key=lambda item: (-life_of(item[0].detail), item[0])):
        yield cause_of(key.detail) if fact == Fact.DEAD else "", UnitSet({key.child: positions})


def _suspects(pipe_ids: Sequence[str], span: Span) -> set[Minute]:
    rows = FactRow.objects.filter(
        pipe_id__in=pipe_ids, bucket__range=(span.first, span.last), fact__in=[str(fact) for fact in _TROUBLE]
    )
    return {Minute(*row) for row in rows.values_list("pipe_id", "bucket").distinct()}


def _sealed_losses(pipe_ids: Sequence[str], span: Span) -> set[Minute]:
    rows = Seal.objects.filter(pipe_id__in=pipe_ids, bucket__range=(span.first, span.last), lost__gt=0)
    return {Minute(*row) for row in rows.values_list("pipe_id", "bucket")}


def _last_attempts(pipe_ids: Sequence[str]) -> dict[tuple[str, str, str], Attempt]:
    """The newest failure of each kind at each destination: what came back, and when it is tried again."""
    rows = Attempt.objects.filter(pipe_id__in=pipe_ids, outcome__in=("parked", "dead"))
    keys = ("pipe_id", "destination", "outcome")
    newest = rows.order_by(*keys, "-at").distinct(*keys)
    return {(row.pipe_id, row.destination, row.outcome): row for row in newest}
