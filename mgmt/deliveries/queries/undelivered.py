"""ACKed but undelivered messages: dead, held, retrying or lost, by pipe, destination and cause.

Dead and held messages are counted as on their own pages and in alerts: those on the topics that no redrive has taken.
The ledger counts retrying and lost ones, as on the pages of a pipe and its minutes.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from dataplane.ledger.bins import Bin, BucketAccount, all_are_delivered, derive
from dataplane.ledger.facts import Fact, cause_of
from mgmt.deliveries.queries.message_selection import waiting
from mgmt.ledger.queries.bucket_range import BucketRange, start_of
from mgmt.ledger.queries.ledger import MinuteKey, books_of, facts_of
from mgmt.models import DeliveryAttempt, FactRow, Pipe, Seal

_Key = tuple[str, str, str, str]  # pipe, destination, bin, cause
_BIN_OF: Final[Mapping[str, str]] = {
    str(Fact.DEAD): Bin.DEAD,
    str(Fact.HELD): Bin.HELD,
    str(Fact.PARKED): Bin.RETRYING,
}


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


def undelivered(*, pipes: Sequence[Pipe], span: BucketRange) -> list[UndeliveredCause]:
    """Return all causes: those that need a person first, then by number of messages.

    span: range of retrying and lost messages; dead and held ones count as long as they are kept
    """
    names = {pipe.id: pipe.name for pipe in pipes}
    gathered: dict[_Key, list[tuple[datetime, int]]] = {}
    for key, since, count in (*_kept(list(names)), *_in_ledger(list(names), span)):
        gathered.setdefault(key, []).append((since, count))
    last = _last_attempts(list(names))
    found = [_undelivered_cause(names, key, counts, last) for key, counts in gathered.items()]
    return sorted(found, key=lambda one: (not one.needs_you, -one.count, one.pipe_name, one.where))


def recent_failures(causes: Sequence[UndeliveredCause], span: BucketRange, parts: int) -> list[list[int]]:
    """Return for each cause the messages that failed in each part of the range, by their minute; one query.

    Dead and held messages are counted once, retrying ones at each scheduled retry; lost messages leave no fact.
    """
    step = -(-span.minutes // parts)
    found: dict[_Key, list[int]] = {_key(cause): [0] * parts for cause in causes}
    rows = FactRow.objects.filter(
        pipe_id__in={cause.pipe_id for cause in causes}, bucket__range=(span.first, span.last), fact__in=list(_BIN_OF)
    )
    for pipe_id, node, fact, detail, bucket, count in rows.values_list(
        "pipe_id", "node", "fact", "detail", "bucket", "count"
    ):
        where, bin_ = node.partition(":")[2], _BIN_OF[fact]
        key = (pipe_id, where, bin_, cause_of(detail) if bin_ == Bin.DEAD else "")
        if key in found:
            found[key][(bucket - span.first) // step] += count
    return [found[_key(cause)] for cause in causes]


def _key(cause: UndeliveredCause) -> _Key:
    return (cause.pipe_id, cause.where, cause.bin, cause.cause)


def lost_messages(*, pipes: Sequence[Pipe], span: BucketRange) -> dict[str, int]:
    """Return the number of lost messages of each pipe that lost any in sealed minutes of the range."""
    lost: dict[str, int] = {}
    for (pipe_id, _, bin_, _), _, count in _in_ledger([pipe.id for pipe in pipes], span):
        if bin_ == Bin.LOST:
            lost[pipe_id] = lost.get(pipe_id, 0) + count
    return lost


def _kept(pipe_ids: Sequence[str]) -> Iterable[tuple[_Key, datetime, int]]:
    """Yield dead and held messages. The reason of a hold is stored with the destination, not with its messages."""
    for one in waiting(pipe_ids=pipe_ids):
        cause = one.cause if one.kind == Bin.DEAD else ""
        yield (one.pipe_id, one.destination, one.kind, cause), one.oldest, one.count


def _in_ledger(pipe_ids: Sequence[str], span: BucketRange) -> Iterable[tuple[_Key, datetime, int]]:
    """Yield retrying messages, and lost ones of sealed minutes: in an open minute, loss is not final."""
    retried = _retried(pipe_ids, span)
    sealed = _sealed(pipe_ids, span, retried)
    suspects = retried | sealed
    fine = {minute for minute, facts in facts_of(suspects).items() if all_are_delivered(facts)}
    for minute, books in books_of(suspects - fine).items():
        since = start_of(minute.bucket)
        for (where, bin_), count in _counts(derive(books), lost_is_final=minute in sealed).items():
            yield (minute.pipe_id, where, bin_, ""), since, count


def _counts(account: BucketAccount, *, lost_is_final: bool) -> Mapping[tuple[str, str], int]:
    names = (Bin.RETRYING, Bin.LOST) if lost_is_final else (Bin.RETRYING,)
    every = {"": account.upstream, **account.destinations}
    return {(where, name): len(bins[name]) for where, bins in every.items() for name in names if len(bins[name])}


def _undelivered_cause(
    names: Mapping[str, str],
    key: _Key,
    counts: Sequence[tuple[datetime, int]],
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
        since=min(since for since, _ in counts),
        reason=attempt.reason if attempt else "",
        status=attempt.status if attempt else 0,
        next_at=attempt.next_at if attempt else None,
    )


def _retried(pipe_ids: Sequence[str], span: BucketRange) -> set[MinuteKey]:
    rows = FactRow.objects.filter(pipe_id__any_of=pipe_ids, bucket__range=(span.first, span.last))
    waited = rows.filter(fact__in=(str(Fact.PARKED), str(Fact.HELD), str(Fact.REDRIVEN)))
    return {MinuteKey(*row) for row in waited.values_list("pipe_id", "bucket").distinct()}


def _sealed(pipe_ids: Sequence[str], span: BucketRange, retried: set[MinuteKey]) -> set[MinuteKey]:
    """Return the sealed minutes that lost a message at their seal, or that may have lost one since."""
    lossy = Seal.objects.filter(pipe_id__any_of=pipe_ids, bucket__range=(span.first, span.last), lost__gt=0)
    of_retried = Seal.objects.filter(
        pipe_id__in={minute.pipe_id for minute in retried}, bucket__in={minute.bucket for minute in retried}
    )
    found = lossy.values_list("pipe_id", "bucket").union(of_retried.values_list("pipe_id", "bucket"))
    return {MinuteKey(*row) for row in found}


def _last_attempts(pipe_ids: Sequence[str]) -> dict[tuple[str, str, str], DeliveryAttempt]:
    """Return the newest failed attempt of each outcome at each destination."""
    rows = DeliveryAttempt.objects.filter(pipe_id__any_of=pipe_ids, outcome__in=("parked", "dead"))
    keys = ("pipe_id", "destination", "outcome")
    newest = rows.order_by(*keys, "-at").distinct(*keys)
    return {(row.pipe_id, row.destination, row.outcome): row for row in newest}
