"""Results of a ramp's two revisions: the sets of units that lanes reported, intersected with the ledger's bins."""

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

from dataplane.ledger.bins import Bin, BucketAccount, BucketFacts, derive
from dataplane.ledger.facts import ACKED, INGEST, Fact, FactKey
from dataplane.ledger.sketch import P95, LagSketch
from dataplane.ledger.units import format_position
from dataplane.names import UNKNOWN_SHARE, ramp_node
from mgmt.ledger.queries.bucket_range import MINUTE_S, bucket_at
from mgmt.ledger.queries.ledger import MinuteKey, books_of
from mgmt.models import FactRow, LagRow, Ramp, RampStep

LOOK_BACK: Final = 30  # minutes of a step that are compared; older ones have already been judged
MOST_MINUTES: Final = 240
MOST_UNITS: Final = 200
FAILED: Final = (Bin.DEAD, Bin.RETRYING)
# After the end of a message's minute; longer than grace, or messages that arrive late would count as stuck.
STUCK_S: Final = 90


class RampFigures(Struct, frozen=True):
    """Results of one revision's messages during one step of a ramp.

    failed:   dead, or waiting for a retry after a failure
    filtered: ended by the revision's own rules
    stuck:    not past the route STUCK_S after the end of their minute
    lost:     lost according to the ledger
    p95_us:   95th percentile of the time from ingest to the destinations' topic; None if no message reached it
    """

    taken: int = 0
    failed: int = 0
    filtered: int = 0
    stuck: int = 0
    lost: int = 0
    p95_us: int | None = None


class RampParticipant(NamedTuple):
    """One revision of a pipe, during one step."""

    pipe_id: str
    share: int
    revision: int

    @property
    def node(self) -> str:
        """Ledger node under which lanes report the revision's messages."""
        return ramp_node(self.share, self.revision)


@dataclass(frozen=True)
class RampStepSummary:
    """Step of a ramp with the figures of its two revisions, final or current."""

    row: RampStep
    ramping: RampFigures
    stable: RampFigures


class RampedUnit(NamedTuple):
    """Unit that a ramping revision processed, with its current bin."""

    bucket: int
    position: int
    child: int
    destination: str
    bin: Bin


def ramp_participants(ramp: Ramp, share: int) -> tuple[RampParticipant, RampParticipant]:
    """Return the ramping and the stable revision, at one step."""
    pipe = ramp.revision.pipe_id
    return RampParticipant(pipe, share, ramp.revision.number), RampParticipant(pipe, share, ramp.stable.number)


def kept_figures(step: RampStep, which: str) -> RampFigures:
    """Return the final figures of `ramping` or `stable` at a step; all zero if the step was never judged."""
    return msgspec.convert(step.figures.get(which, {}), RampFigures)


def step_lines(ramp: Ramp, now: datetime) -> list[RampStepSummary]:
    """Return the steps of a ramp in order, with final or current figures."""
    steps = list(ramp.steps.all())
    open_ones = [taker for step in steps if not step.figures for taker in ramp_participants(ramp, step.share)]
    current = figures_of(open_ones, now) if open_ones else {}
    return [_step_line(ramp, step, current) for step in steps]


def _step_line(ramp: Ramp, step: RampStep, current: Mapping[RampParticipant, RampFigures]) -> RampStepSummary:
    if step.figures:
        return RampStepSummary(step, kept_figures(step, "ramping"), kept_figures(step, "stable"))
    return RampStepSummary(step, *(current[taker] for taker in ramp_participants(ramp, step.share)))


def figures_of(
    takers: Iterable[RampParticipant], now: datetime, since: Mapping[RampParticipant, int] = MappingProxyType({})
) -> dict[RampParticipant, RampFigures]:
    """Return the figures of each participant; seven queries for any number of them.

    since: first bucket that counts, by participant
    """
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


def figures(books: BucketFacts, account: BucketAccount, node: str, bucket: int, now: datetime) -> RampFigures:
    """Return the figures of one bucket, without the lag. Pure."""
    taken = books.facts.get(FactKey(node, Fact.SENT), BitMap64())
    is_over = now.timestamp() > (bucket + 1) * MINUTE_S + STUCK_S
    return RampFigures(
        taken=len(taken),
        failed=len(taken & _messages(account, FAILED)),
        filtered=len(taken & _messages(account, (Bin.FILTERED,))),
        stuck=len(taken & account.upstream[Bin.QUEUED].positions()) if is_over else 0,
        lost=len(taken & _messages(account, (Bin.LOST,))),
    )


def add_up(parts: Iterable[RampFigures], p95_us: int | None = None) -> RampFigures:
    """Return the sum of several buckets' figures."""
    known = list(parts)
    sums = {
        name: sum(getattr(part, name) for part in known) for name in ("taken", "failed", "filtered", "stuck", "lost")
    }
    return RampFigures(**sums, p95_us=p95_us)


def taken_by(ramp: Ramp) -> list[RampedUnit]:
    """Return every unit that the ramping revision processed at any step, with its current bin, newest bucket first.

    Limited to the newest MOST_MINUTES buckets, for ramps that were held for long.
    """
    shares = [UNKNOWN_SHARE, *(step.share for step in ramp.steps.all())]
    takers = [RampParticipant(ramp.revision.pipe_id, share, ramp.revision.number) for share in shares]
    wanted = {(taker.pipe_id, taker.node): taker for taker in takers}
    minutes = {minute for found in _minutes(wanted, 0).values() for minute in found}
    books = books_of(sorted(minutes)[-MOST_MINUTES:])
    nodes = [taker.node for taker in takers]
    return [
        unit for minute in sorted(books, reverse=True) for unit in ramped_units(minute.bucket, books[minute], nodes)
    ]


def bins_of(units: Iterable[RampedUnit]) -> dict[str, int]:
    """Count the units by bin, in the order of the bins; empty bins are omitted."""
    counts = Counter(unit.bin for unit in units)
    return {name.value: counts[name] for name in Bin if counts[name]}


def in_bin(units: Iterable[RampedUnit], name: str) -> Iterable[RampedUnit]:
    """Return the units in this bin; all of them if the name is empty."""
    return (unit for unit in units if not name or unit.bin == name)


def shown(units: Iterable[RampedUnit], most: int) -> list[dict[str, Any]]:
    """Return the first `most` units as plain values for display."""
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


def ramped_units(bucket: int, books: BucketFacts, nodes: Sequence[str]) -> Iterable[RampedUnit]:
    """Yield the units of one bucket that were reported under these nodes. Pure."""
    taken = BitMap64()
    for node in nodes:
        taken |= books.facts.get(FactKey(node, Fact.SENT), BitMap64())
    account = derive(books)
    for where, bins in {"": account.upstream, **account.destinations}.items():
        for name, units in bins.items():
            for child, positions in units.items():
                yield from (RampedUnit(bucket, place, child, where, name) for place in positions & taken)


def _messages(account: BucketAccount, names: Sequence[Bin]) -> BitMap64:
    """Return the positions of messages with at least one unit in these bins."""
    found = BitMap64()
    bins = (account.upstream, *account.destinations.values())
    for _, positions in (pair for one in bins for name in names for pair in one[name].items()):
        found |= positions
    return found


def _minutes(
    wanted: Mapping[tuple[str, str], RampParticipant], first: int
) -> Mapping[RampParticipant, list[MinuteKey]]:
    rows = FactRow.objects.filter(
        pipe_id__in={pipe for pipe, _ in wanted}, node__in={node for _, node in wanted}, bucket__gte=first
    )
    found: dict[RampParticipant, list[MinuteKey]] = defaultdict(list)
    for pipe_id, node, bucket in rows.values_list("pipe_id", "node", "bucket").distinct():
        if taker := wanted.get((pipe_id, node)):
            found[taker].append(MinuteKey(pipe_id, bucket))
    return found


def _p95(
    wanted: Mapping[tuple[str, str], RampParticipant], minutes: Mapping[RampParticipant, list[MinuteKey]]
) -> dict[RampParticipant, int]:
    buckets = {minute.bucket for found in minutes.values() for minute in found}
    rows = LagRow.objects.filter(
        pipe_id__in={pipe for pipe, _ in wanted}, node__in={node for _, node in wanted}, bucket__in=buckets
    )
    sketches: dict[RampParticipant, LagSketch] = defaultdict(LagSketch)
    for pipe_id, node, encoded in rows.values_list("pipe_id", "node", "lag_out"):
        if encoded is not None and (taker := wanted.get((pipe_id, node))):
            sketches[taker].merge(LagSketch.decode(bytes(encoded)))
    return {taker: sketch.quantile(P95) for taker, sketch in sketches.items() if sketch.count}


def recently_ramped_units(pipes: Collection[str], since: datetime) -> dict[str, int]:
    """Return the number of events ACKed since then, by pipe."""
    taken = FactRow.objects.filter(
        pipe_id__in=pipes, node=INGEST, fact=Fact.SENT, detail=ACKED, bucket__gte=bucket_at(since)
    )
    return dict(taken.order_by().values_list("pipe_id").annotate(messages=Sum("count")))
