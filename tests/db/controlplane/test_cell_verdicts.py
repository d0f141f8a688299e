"""Verdicts from rows: heartbeats, seals, lags and leases give one row per cell, at a constant query count."""

from datetime import UTC, datetime, timedelta
from typing import Any, get_args

import pytest
from pytest_django.fixtures import DjangoAssertNumQueries

from controlplane.interlocks import ControllerName, Refusal
from controlplane.leases import acquire
from controlplane.observer.judging import judge_cells, observations
from dataplane.ledger.facts import SLOW, Fact
from dataplane.names import ENTRANCE
from mgmt.models import Cell, CellVerdict, FactRow, Heartbeat, Pipe, Seal
from tests.db.console.truth import Truth

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
BUCKET = int(NOW.timestamp() // 60)
LOOKS = 5


def beat(cell: str, writer: str, at: datetime = NOW, **body: Any) -> None:
    kind = writer.rpartition("-")[0] or writer
    defaults = {
        "kind": kind,
        "epoch": 1,
        "incarnation": "i",
        "state": "running",
        "table_offset": 0,
        "at": at,
        "body": body,
    }
    Heartbeat.objects.update_or_create(cell=cell, writer=writer, defaults=defaults)


@pytest.fixture
def cell(db: None) -> Cell:
    for writer in ("driver", "process-0"):
        beat("c1", writer)
    return Cell.objects.create(id="c1", lanes={"process": 1})


@pytest.fixture
def placed(pipe: Pipe, cell: Cell) -> Pipe:
    pipe.cell = cell
    pipe.save()
    return pipe


def lag(pipe: Pipe, node: str, way: str, lag_us: int) -> None:
    Truth(pipe).lag(BUCKET, node, way, [lag_us])


def test_verdict_is_written_once_and_renewed(cell: Cell):
    assert [judge_cells(NOW), judge_cells(NOW)] == [1, 0]
    row = CellVerdict.objects.get()
    assert (row.cell_id, row.state, row.reasons, row.at) == ("c1", "stable", [], NOW)


def test_cell_without_any_heartbeat_has_no_verdict_that_could_block_its_first_pipe(cell: Cell):
    Cell.objects.create(id="c2")
    judge_cells(NOW)
    assert [row.cell_id for row in CellVerdict.objects.all()] == ["c1"]


def test_persistently_silent_lane_makes_the_cell_unstable(cell: Cell):
    judge_cells(NOW)
    for seconds in (11, 21):
        beat("c1", "driver", NOW + timedelta(seconds=seconds))
        judge_cells(NOW + timedelta(seconds=seconds))
    row = CellVerdict.objects.get()
    assert (row.state, row.reasons) == ("unstable", ["process-0 has sent no heartbeat since 12:00:00 UTC"])


def test_silence_of_all_processes_makes_every_cell_unknown_and_one_heartbeat_ends_that(cell: Cell):
    beat("c2", "driver")
    Cell.objects.create(id="c2")
    judge_cells(NOW)
    later = NOW + timedelta(seconds=11)
    judge_cells(later)
    assert {row.cell_id: row.state for row in CellVerdict.objects.all()} == {"c1": "unknown", "c2": "unknown"}
    for controller in get_args(ControllerName):
        refusal = acquire("c1", controller, "a change", later)
        assert isinstance(refusal, Refusal)
        assert refusal.kind == "cell-unknown"
    beat("", "ingest-1", later)
    assert {one.any_heartbeat for one in observations(later)} == {True}


def test_change_in_progress_silences_its_own_effects(cell: Cell):
    judge_cells(NOW)
    acquire("c1", "scale", "2 lanes", NOW)
    beat("c1", "driver", NOW + timedelta(seconds=30))
    judge_cells(NOW + timedelta(seconds=30))
    row = CellVerdict.objects.get()
    words = "process-0 has sent no heartbeat since 12:00:00 UTC (during scale)"
    assert (row.state, row.silenced) == ("stable", [words])


def test_recent_losses_count_for_their_cell(placed: Pipe):
    for minutes, lost in ((5, 3), (20, 9)):
        at = NOW - timedelta(minutes=minutes)
        Seal.objects.create(
            pipe_id=placed.id,
            bucket=BUCKET - minutes,
            sealed_at=at,
            accepted=9,
            unacked=0,
            lost=lost,
            bins={},
            nodes=[],
        )
    assert [one.lost for one in observations(NOW)] == [3]


@pytest.mark.parametrize(
    ("left_s", "arrived_s", "behind_s"),
    [(0.01, 40, 39), (3_600, 3_640, 0)],
    ids=["fresh events", "events of an hour ago, whose lag is known to a minute"],
)
def test_delay_of_process_is_reported_only_when_it_is_certain(
    placed: Pipe, left_s: float, arrived_s: float, behind_s: float
):
    lag(placed, "ingest", "out", round(left_s * 1_000_000))
    lag(placed, "normalize", "in", round(arrived_s * 1_000_000))
    (one,) = observations(NOW)
    assert max(0, one.behind_us) == pytest.approx(behind_s * 1_000_000, rel=0.05)


def test_pipe_in_the_slow_lane_makes_no_cell_appear_behind(placed: Pipe):
    lag(placed, "ingest", "out", 10_000)
    lag(placed, "normalize", "in", 40_000_000)
    place = {"pipe_id": placed.id, "bucket": BUCKET, "node": ENTRANCE}
    where = {**place, "audit_partition": 0, "positions": b"", "count": 1}
    FactRow.objects.create(**where, fact=Fact.SENT, detail=SLOW)
    (one,) = observations(NOW)
    assert one.behind_us == 0


def test_judging_has_a_constant_query_count(placed: Pipe, django_assert_num_queries: DjangoAssertNumQueries):
    with django_assert_num_queries(LOOKS):
        observations(NOW)
    for number in range(2, 8):
        Cell.objects.create(id=f"c{number}")
        beat(f"c{number}", "driver")
    with django_assert_num_queries(LOOKS):
        assert len(observations(NOW)) == 7
