"""No duration is negative and parts add up to the whole, whatever happens to messages between lanes and pages.

Random populations pass the real stopwatches, are recorded by the real `LagBook` of several lanes, cut at random
checkpoints, split over audit records of random sizes, merged in random order and batches as the Observer does, and
read as pages read them.
"""

import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct

from controlplane.observer.merge import BREAKDOWN, LagId, merged, tally
from dataplane.ledger.audit import AUDIT_VERSION, AuditRecord, LagSet, decode_audit
from dataplane.ledger.breakdown import SLICES, Breakdown, Slice
from dataplane.ledger.breakdown_grid import BreakdownGrid
from dataplane.ledger.meta import MessageMeta, decode_meta, encode_meta
from dataplane.ledger.report_parts import encode_parts
from dataplane.ledger.sketch import P95, LagSketch
from dataplane.ledger.stopwatch import delivery
from dataplane.names import WIRE_VERSION
from dataplane.process.stages import StageTimes
from dataplane.runtime.telemetry.lags import LagBook
from dataplane.transmit.deliveries.delivery import Delivery
from dataplane.transmit.deliveries.settled_units import UnitRound
from mgmt.ledger.queries.timing import portions

NOON: Final = 1_790_000_000_000_000
S: Final = 1_000_000
NODE: Final = "transmit:crm"
HOSTS: Final = ("ingest", "broker", "process", "transmit", "retry")
RECORD_BYTES: Final = (300, 2_000, 500_000)  # size limits of an audit record
QUANTILES: Final = (0.0, 0.05, 0.5, 0.9, P95, 0.99, 1.0)
ROUNDING_US: Final = 4  # for each round in a transmit lane: its three times are whole microseconds

durations = st.one_of(st.integers(0, 20_000), st.integers(0, 4 * 3_600 * S))
waits = st.sampled_from([Slice.RETRY, Slice.HELD, Slice.DEAD_LETTER, Slice.TRANSMIT_QUEUE])


class Round(Struct):
    """Round of a message in one transmit lane, and its wait if it leaves undelivered."""

    waited_us: int
    queued_us: int
    requests_us: list[int]
    pause_us: int
    leaves_for: Slice


class Trip(Struct):
    """One message; `delivered` 0: it is lost, 2: it is delivered twice."""

    source_us: int
    stored_us: int
    queued_us: int
    rounds: list[Round]
    delivered: int


rounds = st.builds(Round, durations, durations, st.lists(durations, min_size=1, max_size=3), durations, waits)
trips = st.builds(
    Trip,
    source_us=st.integers(-3_600 * S, 3_600 * S),
    stored_us=st.integers(0, 50_000),
    queued_us=durations,
    rounds=st.lists(rounds, min_size=1, max_size=3),
    delivered=st.sampled_from([0, 1, 1, 1, 2]),
)
runs = st.lists(
    st.tuples(st.lists(durations, min_size=3, max_size=3), st.lists(trips, min_size=1, max_size=8)), max_size=5
)
skews = st.fixed_dictionaries({host: st.one_of(st.just(0), st.integers(-5 * S, 5 * S)) for host in HOSTS})


class World:
    """Hosts with wall clocks of their own, and the lag records of their lanes."""

    def __init__(self, skews_us: Mapping[str, int], rng: random.Random) -> None:
        self._skews = skews_us
        self._rng = rng
        self._books: defaultdict[str, LagBook] = defaultdict(LagBook)
        self.taken: list[list[LagSet]] = []
        self.whole_us: list[int] = []  # of each delivery, from ingest to its response, by an exact clock

    def wall(self, host: str, moment_us: int) -> int:
        return moment_us + self._skews[host]

    def checkpoint(self, *, last: bool = False) -> None:
        for book in self._books.values():
            if last or self._rng.random() < 0.3:
                self.taken.append(book.take())

    def run(self, stages_us: Sequence[int], run: Sequence[Trip]) -> None:
        """Process these messages together: the run begins when the last of them has arrived."""
        begun_us = NOON + max(trip.stored_us + trip.queued_us for trip in run)
        times = StageTimes(self.wall("process", begun_us))
        moment_us = begun_us
        for stage, took_us in zip((Slice.NORMALIZE, Slice.ROUTE), stages_us, strict=False):
            moment_us += took_us
            times.over(stage, self.wall("process", moment_us))
        moment_us += stages_us[2]
        stamp = times.leave(Slice.TRANSMIT_QUEUE, self.wall("process", moment_us))
        came_us = [begun_us - trip.queued_us - trip.stored_us for trip in run]
        metas = [self._came(trip, at_us, stamp) for trip, at_us in zip(run, came_us, strict=True)]
        lags = [meta.event_time_us for meta in metas]
        key, arrived_us = ("p", "normalize", 1), self.wall("process", begun_us)
        self._books["process"].add_group(key, arrived_us, stages_us[0], lags)
        self.checkpoint()
        for trip, meta, at_us in zip(run, metas, came_us, strict=True):
            for _ in range(max(trip.delivered, 1)):
                self._transmit(trip, meta, at_us, moment_us)

    def _came(self, trip: Trip, came_us: int, stamp: bytes) -> MessageMeta:
        ingest_us = self.wall("ingest", came_us)
        meta = MessageMeta(WIRE_VERSION, "m", "p", 1, "shop", ingest_us - trip.source_us, ingest_us, 1)
        meta.stored_ms = self.wall("broker", came_us + trip.stored_us) // 1_000
        meta.stopwatch = stamp
        return decode_meta(encode_meta(meta))

    def _transmit(self, trip: Trip, meta: MessageMeta, came_us: int, moment_us: int) -> None:
        for number, round_ in enumerate(trip.rounds):
            host = "transmit" if number == 0 else "retry"
            moment_us += round_.waited_us
            send = _send(meta, self.wall(host, moment_us), moment_us)
            moment_us += round_.queued_us
            for took_us in round_.requests_us:
                send.request_begins(_seconds(moment_us))
                moment_us += took_us
                send.request_ends(_seconds(moment_us))
                moment_us += round_.pause_us
            if number == len(trip.rounds) - 1:
                moment_us -= round_.pause_us
                break
            meta = decode_meta(encode_meta(meta))
            meta.stopwatch = send.stamp(round_.leaves_for, _seconds(moment_us))
        if trip.delivered:
            took_us, spent_us = send.time_in_lane(send.ended_s)
            assert spent_us is not None
            self._books[host].add_delivered(("p", NODE, 1), took_us, *delivery(meta, spent_us))
            self.whole_us.append(moment_us - came_us)
        self.checkpoint()


def _send(meta: MessageMeta, taken_us: int, moment_us: int) -> Delivery:
    target: Any = None  # not used here
    return Delivery(
        UnitRound("p", "crm", 0, 0, 1), meta, target, [], None, b"", [(0, 1)], _seconds(moment_us), taken_us
    )


def _seconds(moment_us: int) -> float:
    """Return the time of the monotonic clock: with its own origin, and never 0."""
    return (moment_us - NOON) / S + 86_400


def observed(taken: list[list[LagSet]], rng: random.Random) -> tuple[dict[str, dict[str, LagSketch]], Breakdown]:
    """Merge records as the Observer: in any order and batches, from two partitions; read the rows as pages do."""
    parts = [
        part
        for lags in taken
        for part in encode_parts(
            AuditRecord(AUDIT_VERSION, "c1", "x", "x", 0, [], [], [], lags), rng.choice(RECORD_BYTES)
        )
    ]
    records = [(rng.randrange(2), decode_audit(part)) for part in rng.sample(parts, len(parts))]
    rows: dict[LagId, bytes] = {}
    while records:
        cut = rng.randint(1, len(records))
        batch, records = records[:cut], records[cut:]
        found = tally(batch)
        rows |= {key: merged(rows.get(key), one) for key, one in found.lags.items()}
        rows |= {key: merged(rows.get(key), one) for key, one in found.breakdowns.items()}
    nodes: defaultdict[str, defaultdict[str, LagSketch]] = defaultdict(lambda: defaultdict(LagSketch))
    breakdown = Breakdown()
    for key, value in rows.items():
        if key.way == BREAKDOWN:
            breakdown.merge(Breakdown.decode(value))
        else:
            nodes[key.node][key.way].merge(LagSketch.decode(value))
    return {node: dict(ways) for node, ways in nodes.items()}, breakdown


@settings(max_examples=25, deadline=None)
@given(skews, runs, st.randoms(use_true_random=False))
def test_no_duration_is_negative_and_parts_add_up(
    skews_us: Mapping[str, int], population: list[tuple[list[int], list[Trip]]], rng: random.Random
):
    world = World(skews_us, rng)
    for stages_us, run in population:
        world.run(stages_us, run)
    world.checkpoint(last=True)
    nodes, breakdown = observed(world.taken, rng)

    for ways in nodes.values():  # all three sketches of a node are of the same messages
        assert ways["in"].count == ways["out"].count == ways["own"].count
        for q in QUANTILES:
            assert ways["out"].quantile(q) >= ways["in"].quantile(q)
        assert 0 <= ways["own"].quantile(0.5) <= ways["own"].quantile(0.99) <= ways["own"].max_us

    assert breakdown.count == len(world.whole_us) == (nodes[NODE]["out"].count if NODE in nodes else 0)
    for q in QUANTILES if breakdown.count else ():
        found = list(breakdown.portions(q))
        assert all(portion.took_us >= 0 for portion in found)
        assert sum(portion.took_us for portion in found) == breakdown.whole.quantile(q)
        assert all(0 <= portion.own.quantile(q) <= portion.own.max_us for portion in found)
    assert sum(portion.sum_us for portion in breakdown.portions(0.5)) == breakdown.sum_us
    grid = BreakdownGrid(1, [(0, breakdown.encode())])
    shown = portions(grid.of_all(P95))
    assert all(portion.share >= 0 and portion.mean_us >= 0 for portion in shown)
    assert not shown or abs(sum(portion.share for portion in shown) - 1) < 1e-9 or not sum(p.took_us for p in shown)


@settings(max_examples=15, deadline=None)
@given(runs, st.randoms(use_true_random=False))
def test_total_is_the_true_time_when_all_hosts_agree_on_the_time(
    population: list[tuple[list[int], list[Trip]]], rng: random.Random
):
    world = World(dict.fromkeys(HOSTS, 0), rng)
    for stages_us, run in population:
        world.run(stages_us, run)
    world.checkpoint(last=True)
    _, breakdown = observed(world.taken, rng)
    true_us = sorted(world.whole_us)
    assert abs(breakdown.sum_us - sum(true_us)) <= ROUNDING_US * 3 * len(true_us)
    for q in QUANTILES if true_us else ():
        exact = true_us[int(q * (len(true_us) - 1))]
        assert abs(breakdown.whole.quantile(q) - exact) <= exact * 0.01 + ROUNDING_US * 3
    assert len(breakdown.encode()) < 200 * SLICES * (len(true_us) + 1)
