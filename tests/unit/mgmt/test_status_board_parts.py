"""Parts of the status board: folded histories, trends of cells, and the order and the words of problems."""

from datetime import UTC, datetime, timedelta
from typing import get_args

import pytest

from controlplane.interlocks import RefusalKind
from controlplane.observer.verdict import CellFinding
from mgmt.cells.history import folded
from mgmt.cells.problems import NEXT_STEPS, Affected, ProblemKind, in_order, of_cell, of_ingest, of_kafka, of_tasks
from mgmt.cells.queries.cell_trends import PARTS, GroupPart, trend_of
from mgmt.cells.queries.overdue_tasks import OverdueTask
from mgmt.models import Cell, CellVerdict, ControlAction, KafkaCheck, TaskRun

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
ALL = Affected(7, 20)
Outcome = ControlAction.Outcome


def entry(number: int, outcome: Outcome, *, refusal: str = "", cell: str = "c1", pipe: str = "") -> ControlAction:
    at = NOW + timedelta(seconds=number)
    return ControlAction(
        id=number, at=at, action="ramp", outcome=outcome, refusal=refusal, cell_id=cell, pipe_id=pipe or None
    )


def refused(number: int, refusal: str = "paused", **more: str) -> ControlAction:
    return entry(number, Outcome.REFUSED, refusal=refusal, **more)


def test_equal_refusals_share_a_line_with_count_and_first_and_last_time():
    newest_first = [refused(4, pipe="p2"), refused(3, "cell-unstable"), refused(2, pipe="p1"), refused(1, pipe="p2")]
    same, other = folded(newest_first, lines=10, entries=10).lines
    assert (same.count, same.first_at, same.last_at) == (3, NOW + timedelta(seconds=1), NOW + timedelta(seconds=4))
    assert same.pipes == {"p1", "p2"}
    assert (other.action.refusal, other.count) == ("cell-unstable", 1)


def test_refusals_before_and_after_a_change_of_the_cell_are_two_lines():
    done = [refused(5), refused(4), entry(3, Outcome.DONE), refused(2), refused(1)]
    assert [line.count for line in folded(done, lines=10, entries=10).lines] == [2, 1, 2]
    elsewhere = [refused(5), entry(3, Outcome.DONE, cell="c2"), refused(2)]
    assert [line.count for line in folded(elsewhere, lines=10, entries=10).lines] == [2, 1], "c2 is another cell"


def test_changes_are_never_folded():
    done = [entry(number, Outcome.DONE) for number in (3, 2, 1)]
    assert [line.count for line in folded(done, lines=10, entries=10).lines] == [1, 1, 1]


def test_history_is_bounded_and_leads_on_without_a_gap():
    entries = [refused(number, cell=f"c{number % 3}") for number in range(30, 0, -1)]
    assert folded(entries, lines=3, entries=100).next_before is None
    first = folded(entries, lines=2, entries=100)
    assert (len(first.lines), first.next_before) == (2, 29)
    bounded = folded(entries, lines=100, entries=10)
    assert (sum(line.count for line in bounded.lines), bounded.next_before) == (10, 21)
    rest = folded([one for one in entries if one.id < 21], lines=100, entries=100)
    assert sum(line.count for line in rest.lines) == 20


def test_every_refusal_of_the_interlocks_and_every_finding_has_a_type_on_the_board():
    assert set(get_args(RefusalKind)) <= set(ControlAction.Refusal.values)
    assert set(get_args(CellFinding.__annotations__["kind"])) <= set(ProblemKind)
    assert set(NEXT_STEPS) == set(ProblemKind)


def part(number: int, came: tuple[int, int], settled: tuple[int, int]) -> GroupPart:
    return GroupPart(number, 300.0, came, settled)


def test_trend_has_the_rate_of_ingest_and_the_lag_of_the_slower_group():
    process = [part(0, (0, 600), (0, 600)), part(1, (600, 1_200), (600, 900))]
    transmit = [part(1, (0, 300), (0, 150))]
    trend = trend_of({"process": process, "transmit": transmit})
    assert trend.rates[:3] == [2.0, 2.0, None]
    assert trend.lags_us[:3] == [0, 300_000_000, None], "300 wait at 1 per second; 150 at 0.5 per second"
    assert len(trend.rates) == len(trend.lags_us) == PARTS


def test_lag_grows_while_nothing_is_settled():
    stuck = [part(number, (600, 600), (0, 0)) for number in range(3)]
    assert trend_of({"process": stuck}).lags_us[:3] == [300_000_000, 600_000_000, 900_000_000]


def test_replaced_topics_show_no_rate():
    assert trend_of({"process": [part(0, (9_000, 5), (9_000, 5))]}).rates[0] is None


def verdict(state: str, *kinds: str) -> CellVerdict:
    return CellVerdict(cell_id="c1", state=state, reasons=["why"], kinds=list(kinds), since=NOW, at=NOW)


@pytest.mark.parametrize(
    ("row", "kind", "route"),
    [
        (verdict("unstable", "loss", "silent"), ProblemKind.CELL_LOSS, "all_losses"),
        (verdict("unstable", "silent"), ProblemKind.CELL_SILENT, "cell"),
        (verdict("unstable"), ProblemKind.CELL_RECOVERING, "cell"),
        (verdict("unknown", "unknown"), ProblemKind.CELL_UNKNOWN, "cell"),
    ],
)
def test_cell_that_is_not_stable_has_the_step_for_its_most_severe_finding(row: CellVerdict, kind: str, route: str):
    (found,) = of_cell(Cell(id="c1"), row, ALL, is_reporting=True)
    assert (found.kind, found.route, found.since, found.affected) == (kind, route, NOW, ALL)
    assert "why" in found.what


def test_stable_cell_and_one_without_a_verdict_are_no_problem():
    for row in (verdict("stable"), None):
        assert list(of_cell(Cell(id="c1"), row, ALL, is_reporting=True)) == []


def test_cell_with_pipes_that_never_sent_a_heartbeat_has_not_started():
    cell = Cell(id="c2")
    (found,) = of_cell(cell, None, ALL, is_reporting=False)
    assert (found.kind, found.args) == (ProblemKind.CELL_NOT_STARTED, ("c2",))
    assert "release" in found.todo
    assert list(of_cell(cell, None, Affected(0, 0), is_reporting=False)) == [], "nobody waits for it"
    cell.lanes = {}
    assert list(of_cell(cell, None, ALL, is_reporting=False)) == []


def check(state: str, **more: object) -> KafkaCheck:
    return KafkaCheck(cluster="main", at=NOW, since=NOW, state=state, **more)


def test_brokers_are_a_problem_of_every_tenant_only_if_messages_cannot_pass():
    assert list(of_kafka(None, ALL)) == list(of_kafka(check("healthy"), ALL)) == []
    (gone,) = of_kafka(check("unreachable", error="timed out"), ALL)
    assert (gone.kind, gone.affected, "timed out" in gone.what) == (ProblemKind.KAFKA_UNREACHABLE, ALL, True)
    brokers = [{"id": 1, "address": "", "alive": False}]
    (slow,) = of_kafka(check("degraded", under_replicated=4, brokers=brokers), ALL)
    assert (slow.affected, slow.what) == (None, "broker 1 is missing; 4 partitions are under-replicated")
    (dead,) = of_kafka(check("degraded", leaderless=2, under_replicated=4), ALL)
    assert (dead.affected, dead.what.startswith("2 partitions have no leader")) == (ALL, True)


def test_missing_ingest_replica_affects_tenants_only_if_none_is_left():
    assert list(of_ingest(2, 2, ALL, is_observed=True)) == []
    assert [one.affected for one in of_ingest(2, 1, ALL, is_observed=True)] == [None]
    assert [one.affected for one in of_ingest(2, 0, ALL, is_observed=True)] == [ALL]
    assert list(of_ingest(2, 0, ALL, is_observed=False)) == [], "nothing is known of any replica"


def run(outcome: str, since: datetime = NOW) -> TaskRun:
    return TaskRun(task="deployer.tick", at=NOW, outcome=outcome, since=since, said="ValueError")


def test_task_is_listed_once_with_the_reason_that_helps_most():
    late = [OverdueTask("deployer.tick", NOW)]
    kinds = lambda overdue, row: [one.kind for one in of_tasks(overdue, {"deployer.tick": row}, NOW)]  # noqa: E731
    assert kinds(late, run("changed")) == [ProblemKind.TASK_OVERDUE]
    assert kinds(late, run("failed")) == kinds([], run("failed")) == [ProblemKind.TASK_FAILED]
    assert kinds([], run("waiting")) == [], "a broker may be elected just now"
    assert kinds([], run("waiting", NOW - timedelta(minutes=2))) == [ProblemKind.TASK_WAITING]
    assert kinds([], run("nothing")) == []


def test_problem_of_most_tenants_is_first_and_of_these_the_oldest():
    late = verdict("unstable", "silent")
    early = verdict("unstable", "silent")
    early.since = NOW - timedelta(hours=1)
    young, old = (next(iter(of_cell(Cell(id="c1"), row, ALL, is_reporting=True))) for row in (late, early))
    (mild,) = of_ingest(2, 1, ALL, is_observed=True)
    assert in_order([mild, young, old]) == [old, young, mild]
