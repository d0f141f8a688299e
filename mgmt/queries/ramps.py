"""What a ramp's two revisions made of their messages: the sets that lanes booked, met with the bins of the ledger."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import msgspec
from django.db.models import Sum
from msgspec import Struct
from pyroaring import BitMap64

from dataplane.ledger.bins import Account, Bin, Books, derive
from dataplane.ledger.facts import ACKED, INGEST, Fact, FactKey
from dataplane.ledger.sketch import P95, Sketch
from dataplane.ledger.units import format_position
from dataplane.names import NOT_HEARD, ramp_node
from mgmt.models import FactRow, LagRow, Ramp, RampStep
from mgmt.queries.ledger import Minute, books_of
from mgmt.queries.span import MINUTE_S, bucket_at

LOOK_BACK: Final = 30  # minutes of a step that are compared: what is older has had its say
MOST_MINUTES: Final = 240
MOST_UNITS: Final = 200
FAILED: Final = (Bin.DEAD, Bin.RETRYING)
STUCK_S: Final = 90  # from the end of a message's minute on: longer than grace, or what comes late would seem to wait


class Figures(Struct, frozen=True):
    """What became of one revision's messages during one step of a ramp.

    failed: dead, or refused and waiting for their next try   filtered: ended by the revision's own rules
    stuck:  still before the route when their minute is well over   lost: as the ledger says
    p95_us: from ingest to the destinations' topic, the 95th percentile; None if nothing got so far
    """

    taken: int = 0
    failed: int = 0
    filtered: int = 0
    stuck: int = 0
    lost: int = 0
    p95_us: int | None = None


class Taker(NamedTuple):
    """One revision of a pipe, during one step."""

    pipe_id: str
    share: int
    revision: int

    @property
    def node(self) -> str:
        """Where lanes booked what it took."""
        return ramp_node(self.share, self.revision)


@dataclass(frozen=True)
class StepLine:
    """A step of a ramp with the figures of its two revisions: as it was left, or as they are now."""

    row: RampStep
    ramping: Figures
    stable: Figures


class TakenUnit(NamedTuple):
    """A unit that a ramping revision took, and the bin in which it is now."""

    bucket: int
    position: int
    child: int
    destination: str
    bin: Bin


def takers_of(ramp: Ramp, share: int) -> tuple[Taker, Taker]:
    """The ramping revision and the stable one, at one step."""
    pipe = ramp.revision.pipe_id
    return Taker(pipe, share, ramp.revision.number), Taker(pipe, share, ramp.stable.number)


def kept_figures(step: RampStep, which: str) -> Figures:
    """The figures of `ramping` or `stable` on which a step was left; all zero if nobody judged it."""
    return msgspec.convert(step.figures.get(which, {}), Figures)


def step_lines(ramp: Ramp, now: datetime) -> list[StepLine]:
    """The steps in the order in which they came."""
    steps = list(ramp.steps.all())
    open_ones = [taker for step in steps if not step.figures for taker in takers_of(ramp, step.share)]
    current = figures_of(open_ones, now) if open_ones else {}
    return [_step_line(ramp, step, current) for step in steps]


def _step_line(ramp: Ramp, step: RampStep, current: Mapping[Taker, Figures]) -> StepLine:
    if step.figures:
        return StepLine(step, kept_figures(step, "ramping"), kept_figures(step, "stable"))
    return StepLine(step, *(current[taker] for taker in takers_of(ramp, step.share)))


def figures_of(
    takers: Iterable[Taker], now: datetime, since: Mapping[Taker, int] = MappingProxyType({})
) -> dict[Taker, Figures]:
    """The figures of each, with seven queries whatever their number. `since`: the first minute that counts."""
    wanted = {(taker.pipe_id, taker.node): taker for taker in takers}
    minutes = {
        taker: [minute for minute in found if minute.bucket >= since.get(taker, 0)]
        for taker, found in _minutes(wanted, bucket_at(now) - LOOK_BACK).items()
    }
    books = books_of(minute for found in minutes.values() for minute in found)
    accounts = {minute: derive(one) for minute, one in books.items()}
    p95 = _p95(wanted, minutes)
    return {
        taker: add_up(
            (
                figures(books[minute], accounts[minute], taker.node, minute.bucket, now)
                for minute in minutes.get(taker, [])
            ),
            p95.get(taker),
        )
        for taker in wanted.values()
    }


def figures(books: Books, account: Account, node: str, bucket: int, now: datetime) -> Figures:
    """One minute's part, without the lag. Pure."""
    taken = books.facts.get(FactKey(node, Fact.SENT), BitMap64())
    is_over = now.timestamp() > (bucket + 1) * MINUTE_S + STUCK_S
    return Figures(
        taken=len(taken),
        failed=len(taken & _messages(account, FAILED)),
        filtered=len(taken & _messages(account, (Bin.FILTERED,))),
        stuck=len(taken & account.upstream[Bin.QUEUED].positions()) if is_over else 0,
        lost=len(taken & _messages(account, (Bin.LOST,))),
    )


def add_up(parts: Iterable[Figures], p95_us: int | None = None) -> Figures:
    """The sum of some minutes."""
    known = list(parts)
    sums = {
        name: sum(getattr(part, name) for part in known) for name in ("taken", "failed", "filtered", "stuck", "lost")
    }
    return Figures(**sums, p95_us=p95_us)


def taken_by(ramp: Ramp) -> list[TakenUnit]:
    """Every unit that the ramping revision took at any step, with the bin it is in now; the newest minute first.

    Of a ramp that was held for long the newest minutes, at most MOST_MINUTES.
    """
    shares = [NOT_HEARD, *(step.share for step in ramp.steps.all())]
    takers = [Taker(ramp.revision.pipe_id, share, ramp.revision.number) for share in shares]
    wanted = {(taker.pipe_id, taker.node): taker for taker in takers}
    minutes = {minute for found in _minutes(wanted, 0).values() for minute in found}
    books = books_of(sorted(minutes)[-MOST_MINUTES:])
    nodes = [taker.node for taker in takers]
    return [unit for minute in sorted(books, reverse=True) for unit in taken_units(minute.bucket, books[minute], nodes)]


def bins_of(units: Iterable[TakenUnit]) -> dict[str, int]:
    """How many of the units are in each bin, in the order of the bins; empty ones are left out."""
    counts = Counter(unit.bin for unit in units)
    return {name.value: counts[name] for name in Bin if counts[name]}


def in_bin(units: Iterable[TakenUnit], name: str) -> Iterable[TakenUnit]:
    """Those of the units that are in this bin; all, where none is named."""
    return (unit for unit in units if not name or unit.bin == name)


def shown(units: Iterable[TakenUnit], most: int) -> list[dict[str, Any]]:
    """The first of the units, as people read them."""
    return [
        {
            "position": format_position(unit.position),
            "child": unit.child,
            "destination": unit.destination,
            "bin": unit.bin.value,
            "bucket": unit.bucket,
        }
        for unit in islice(units, most)
    ]


def taken_units(bucket: int, books: Books, nodes: Sequence[str]) -> Iterable[TakenUnit]:
    """The units of one minute that were booked under these nodes. Pure."""
    taken = BitMap64()
    for node in nodes:
        taken |= books.facts.get(FactKey(node, Fact.SENT), BitMap64())
    account = derive(books)
    for where, bins in {"": account.upstream, **account.destinations}.items():
        for name, units in bins.items():
            for child, positions in units.items():
                yield from (TakenUnit(bucket, place, child, where, name) for place in positions & taken)


def _messages(account: Account, names: Sequence[Bin]) -> BitMap64:
    """The messages of which some unit is in one of these bins."""
    found = BitMap64()
    bins = (account.upstream, *account.destinations.values())
    for _, positions in (pair for one in bins for name in names for pair in one[name].items()):
        found |= positions
    return found


def _minutes(wanted: Mapping[tuple[str, str], Taker], first: int) -> Mapping[Taker, list[Minute]]:
    rows = FactRow.objects.filter(
        pipe_id__in={pipe for pipe, _ in wanted}, node__in={node for _, node in wanted}, bucket__gte=first
    )
    found: dict[Taker, list[Minute]] = defaultdict(list)
    for pipe_id, node, bucket in rows.values_list("pipe_id", "node", "bucket").distinct():
        if taker := wanted.get((pipe_id, node)):
            found[taker].append(Minute(pipe_id, bucket))
    return found


def _p95(wanted: Mapping[tuple[str, str], Taker], minutes: Mapping[Taker, list[Minute]]) -> dict[Taker, int]:
    buckets = {minute.bucket for found in minutes.values() for minute in found}
    rows = LagRow.objects.filter(
        pipe_id__in={pipe for pipe, _ in wanted}, node__in={node for _, node in wanted}, bucket__in=buckets
    )
    sketches: dict[Taker, Sketch] = defaultdict(Sketch)
    for pipe_id, node, encoded in rows.values_list("pipe_id", "node", "lag_out"):
        if encoded is not None and (taker := wanted.get((pipe_id, node))):
            sketches[taker].merge(Sketch.decode(bytes(encoded)))
    return {taker: sketch.quantile(P95) for taker, sketch in sketches.items() if sketch.count}


def recently_taken(pipes: Collection[str], since: datetime) -> dict[str, int]:
    """How many messages each of the pipes took since then."""
    taken = FactRow.objects.filter(
        pipe_id__in=pipes, node=INGEST, fact=Fact.SENT, detail=ACKED, bucket__gte=bucket_at(since)
    )
    return dict(taken.order_by().values_list("pipe_id").annotate(messages=Sum("count")))
