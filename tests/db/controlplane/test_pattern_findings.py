"""Patterns judged from rows: each block once despite kills, silenced while explained, at a bounded cost."""

import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

import msgspec
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pyroaring import BitMap64

from controlplane.leases import note
from controlplane.observer.patterns import CATCH_UP, watch_patterns
from controlplane.observer.trim import trim
from dataplane.ledger.sketch import LagSketch
from mgmt.deliveries.queries.blocks import blocks_of
from mgmt.models import (
    Cell,
    CellVerdict,
    ControlAction,
    FactRow,
    Finding,
    LagRow,
    Notification,
    PatternHour,
    PatternMark,
    Pipe,
    PipeRevision,
    Ramp,
    Tenant,
    User,
)
from mgmt.patterns.blocks import IN_HOUR, MINUTES, PatternBlock, hour_of, minutes_of
from mgmt.patterns.usual import HOURS_BACK
from mgmt.services import create_pipe
from tests.db.cast import MakeSpec
from tests.db.console.truth import Truth
from tests.db.controlplane.watching import BLOCK, FIRST, GRACE_S, NOW, START, watch_from_first, well_cell

GOOD: Final = PatternBlock(1_000, 1_000, 0, 1_000, 40_000)
Does = Callable[[int, PatternBlock], None]


@pytest.fixture
def cell(db: None) -> Cell:
    return well_cell()


@pytest.fixture
def placed(pipe: Pipe, cell: Cell) -> Pipe:
    watch_from_first(pipe, cell)
    had(pipe, GOOD)
    return pipe


@pytest.fixture
def does(placed: Pipe) -> Does:
    """Function that stores a block's ledger facts, all in the block's second minute."""

    def does(number: int, block: PatternBlock) -> None:
        truth, bucket = Truth(placed), minutes_of(number)[1]
        for node, fact, detail, count in (
            ("ingest", "sent", "acked", block.volume),
            ("transmit:crm", "delivered", "", block.delivered),
            ("transmit:crm", "dead", "rejected", block.failed),
        ):
            truth.fact(bucket, node, fact, list(range(count)), detail)
        if block.arrived:
            truth.lag(bucket, "transmit:crm", "out", [block.lag_p95_us] * block.arrived)

    return does


def had(pipe: Pipe, block: PatternBlock, *, before: int = FIRST) -> None:
    """Store the same figures in each block of the hours used for comparison."""
    hours = [PatternHour(pipe_id=pipe.id, hour=hour_of(before) - back) for back in HOURS_BACK]
    for row in hours:
        row.blocks = msgspec.to_builtins([block] * IN_HOUR)
    PatternHour.objects.bulk_create(hours)


def told() -> list[tuple[str, str]]:
    return list(Finding.objects.exclude(told_at=None).order_by("id").values_list("kind", "words"))


def test_stopped_pipe_is_a_finding_after_its_second_block_and_raises_no_alert(placed: Pipe):
    assert watch_patterns(NOW, GRACE_S) == 0
    assert watch_patterns(NOW + BLOCK - timedelta(seconds=2), GRACE_S) == 0
    assert told() == []
    assert watch_patterns(NOW + BLOCK, GRACE_S) == 1
    row = Finding.objects.get()
    assert (row.since, row.told_at, row.ended_at) == (START, NOW + BLOCK, None)
    assert told() == [("quiet", "0 events/min where 200 are usual at this hour of the week")]
    assert (placed.alerts.count(), Notification.objects.count()) == (0, 0)


def test_finding_ends_after_two_usual_blocks(placed: Pipe, does: Does):
    for number in (2, 3):
        does(FIRST + number, GOOD)
    told_at_all = [watch_patterns(NOW + number * BLOCK, GRACE_S) for number in range(4)]
    assert told_at_all == [0, 1, 0, 0]
    assert Finding.objects.get().ended_at == START + 4 * BLOCK


def test_finding_of_a_single_block_is_deleted(placed: Pipe, does: Does):
    watch_patterns(NOW, GRACE_S)
    assert Finding.objects.get().told_at is None
    does(FIRST + 1, GOOD)
    watch_patterns(NOW + BLOCK, GRACE_S)
    assert not Finding.objects.exists()


def test_block_is_read_from_the_ledger_without_counting_ramps_twice(placed: Pipe, does: Does):
    does(FIRST, PatternBlock(30, 25, 5, 25, 40_000))
    truth = Truth(placed)
    truth.fact(minutes_of(FIRST)[4], "transmit:crm", "parked", [31, 32], "1")
    truth.fact(minutes_of(FIRST)[4], "transmit:crm", "parked", [31], "2")
    truth.fact(minutes_of(FIRST)[1], "ramp:2:transmit:crm", "dead", [1, 2], "rejected")
    truth.fact(minutes_of(FIRST)[4] + 1, "ingest", "sent", [40], "acked")
    found = blocks_of([placed.id], FIRST)[placed.id]
    assert found == PatternBlock(30, 25, 7, 25, found.lag_p95_us)
    assert found.lag_p95_us == pytest.approx(40_000, rel=0.02)


def test_repeated_run_changes_nothing(placed: Pipe):
    watch_patterns(NOW, GRACE_S)
    before = (list(Finding.objects.values()), list(PatternHour.objects.order_by("id").values()))
    PatternMark.objects.update(block=FIRST - 1)  # as left by a run that was killed before it moved the mark
    watch_patterns(NOW + timedelta(seconds=9), GRACE_S)
    assert (list(Finding.objects.values()), list(PatternHour.objects.order_by("id").values())) == before


def test_missed_blocks_are_judged_in_order_for_one_hour_at_most(placed: Pipe):
    watch_patterns(NOW + 3 * BLOCK, GRACE_S)
    assert (told(), PatternMark.objects.get().block) == (
        [("quiet", "0 events/min where 200 are usual at this hour of the week")],
        FIRST + 3,
    )
    watch_patterns(NOW + (3 + 2 * CATCH_UP) * BLOCK, GRACE_S)
    kept = PatternHour.objects.filter(pipe_id=placed.id, hour__gte=hour_of(FIRST)).order_by("hour")
    assert [sum(block is not None for block in row.blocks) for row in kept] == [4, 8, 4]


@pytest.mark.parametrize(
    "verdict",
    [
        pytest.param({"state": "unknown"}, id="nothing is heard"),
        pytest.param({"since": START + timedelta(minutes=6)}, id="heard again only since"),
        pytest.param({"at": START}, id="nobody has judged since"),
    ],
)
def test_block_without_a_verdict_for_it_is_neither_judged_nor_stored(placed: Pipe, verdict: dict[str, object]):
    CellVerdict.objects.update(**verdict)
    watch_patterns(NOW + BLOCK, GRACE_S)
    assert not Finding.objects.exists()
    assert not PatternHour.objects.filter(hour=hour_of(FIRST)).exists()


SLOW: Final = PatternBlock(1_000, 1_000, 0, 1_000, 30_000_000)
FAILING: Final = PatternBlock(1_000, 500, 500, 1_000, 40_000)
STOPPED: Final = PatternBlock(0, 0, 0, 0)


def deploys(pipe: Pipe) -> None:
    note("deploy", "give-release", outcome=ControlAction.Outcome.DONE, at=START + timedelta(minutes=6), cell="c1")


def scales(pipe: Pipe) -> None:
    note("scale", "scale", outcome=ControlAction.Outcome.DONE, at=START - timedelta(minutes=4), cell="c1")


def ramps(pipe: Pipe) -> None:
    stable = pipe.revisions.get()
    revision = PipeRevision.objects.create(pipe=pipe, number=2, spec=stable.spec, state="ramping")
    Ramp.objects.create(revision=revision, stable=stable, share=5, began_at=START - timedelta(minutes=1))


def pauses(pipe: Pipe) -> None:
    Pipe.objects.filter(id=pipe.id).update(state="paused")


def shakes(pipe: Pipe) -> None:
    CellVerdict.objects.update(state="unstable")


@pytest.mark.parametrize(
    ("happens", "block", "silenced"),
    [
        (deploys, SLOW, "while a release was deployed on cell c1"),
        (scales, SLOW, "while lanes were changed on cell c1"),
        (ramps, SLOW, "during the ramp of revision 2, which compares both revisions"),
        (ramps, FAILING, "during the ramp of revision 2, which compares both revisions"),
        (pauses, SLOW, "while the pipe is paused"),
        (shakes, SLOW, "while cell c1 is unstable"),
        (deploys, FAILING, None),
        (deploys, STOPPED, None),
        (ramps, STOPPED, None),
    ],
)
def test_finding_that_a_change_explains_is_listed_and_not_reported(
    placed: Pipe, does: Does, happens: Callable[[Pipe], None], block: PatternBlock, silenced: str | None
):
    happens(placed)
    for number in (FIRST, FIRST + 1):
        does(number, block)
    watch_patterns(NOW + BLOCK, GRACE_S)
    row = Finding.objects.get()
    assert (row.silenced, row.told_at is None) == (silenced or "", silenced is not None)


def test_closed_pipe_is_not_watched_and_idle_pipe_leaves_no_rows(placed: Pipe, cell: Cell, alice: User):
    Pipe.objects.filter(id=placed.id).update(state="closed")
    idle = create_pipe(tenant=placed.tenant, name="idle", spec=placed.revisions.get().spec, author=alice)
    Pipe.objects.filter(id=idle.id).update(cell=cell)
    before = PatternHour.objects.count()
    watch_patterns(NOW + BLOCK, GRACE_S)
    assert (Finding.objects.count(), PatternHour.objects.count()) == (0, before)


def test_findings_of_a_pipe_end_when_it_is_closed(placed: Pipe):
    watch_patterns(NOW + BLOCK, GRACE_S)
    Pipe.objects.filter(id=placed.id).update(state="closed")
    watch_patterns(NOW + 2 * BLOCK, GRACE_S)
    assert Finding.objects.get().ended_at == NOW + 2 * BLOCK


def test_query_count_does_not_grow_with_pipes(placed: Pipe, tenant: Tenant, alice: User, a_spec: MakeSpec):
    def queries(now: datetime) -> int:
        with CaptureQueriesContext(connection) as asked:
            watch_patterns(now, GRACE_S)
        return len(asked)

    with_one = queries(NOW)
    for number in range(20):
        pipe = create_pipe(tenant=tenant, name=f"more {number}", spec=a_spec(), author=alice)
        Pipe.objects.filter(id=pipe.id).update(cell=placed.cell)
        had(pipe, GOOD)
    assert queries(NOW + BLOCK) <= with_one + 1  # existing findings are updated, new ones inserted
    assert Finding.objects.count() == 21


def test_hours_that_are_no_longer_compared_are_trimmed(placed: Pipe):
    def kept() -> int:
        trim(NOW + timedelta(days=8, hours=1), attempts_keep_h=1, seals_keep_d=400, ends_keep=timedelta(days=1))
        return PatternHour.objects.count()

    assert kept() == len(HOURS_BACK) - 2  # those of three and four weeks back are older than 29 days


@pytest.mark.long
@pytest.mark.timeout(900)
def test_ten_thousand_busy_pipes_use_less_than_a_tenth_of_a_core(placed: Pipe, tenant: Tenant):
    pipes = [Pipe(tenant=tenant, name=f"more {number}", cell=placed.cell) for number in range(10_000)]
    Pipe.objects.bulk_create(pipes)
    for pipe in pipes:
        had(pipe, GOOD)
    sketch = LagSketch()
    sketch.add(range(20_000, 60_000, 40))
    positions = BitMap64(range(200)).serialize()
    for minute in minutes_of(FIRST):
        places = [{"pipe_id": pipe.id, "bucket": minute, "audit_partition": 0} for pipe in pipes]
        LagRow.objects.bulk_create(
            [LagRow(**place, node="transmit:crm", lag_out=sketch.encode()) for place in places], 5_000
        )
        for node, fact, detail in (("ingest", "sent", "acked"), ("transmit:crm", "delivered", "")):
            rows = [
                FactRow(**place, node=node, fact=fact, detail=detail, positions=positions, count=200)
                for place in places
            ]
            FactRow.objects.bulk_create(rows, 5_000)
    began_s = time.process_time()
    watch_patterns(NOW, GRACE_S)
    took_s = time.process_time() - began_s
    assert PatternHour.objects.filter(hour=hour_of(FIRST)).count() == 10_001
    assert took_s < 6 * MINUTES, f"{took_s:.1f} s"
