"""Scheduling in a process lane: a pass is limited in time, and tenants share it by the cost of messages."""

from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dataplane.plan import compile_plan
from dataplane.process import budget, work
from dataplane.process.flows import CHUNK_NS, MOST_AT_ONCE, MOST_PARTS, FlowCost
from dataplane.runtime.kafka import SESSION_TIMEOUT_MS
from dataplane.spec import parse_pipe_spec
from dataplane.tables.records import PipeRecord, PlanRecord, QuotaRecord
from tests.support.memory_lane import MemoryLane
from tests.support.process_lane import arrived, dead, egress, opened, plan

DEAR_MS = 14.0  # four legal steps of 3.5 ms


class Runs:
    """Clock that advances only by the cost of messages, with a list of those that ran."""

    def __init__(self, lane: MemoryLane, monkeypatch: pytest.MonkeyPatch, **cost_ms: float) -> None:
        self.now_ns, self.cost_ms = 1_000_000_000_000, cost_ms
        lane.work._costs.clear()  # no cost of any pipe is known yet
        self.ran: list[str] = []
        self.longest_ms = 0.0
        clock = SimpleNamespace(
            monotonic=lambda: self.now_ns / 1e9,
            monotonic_ns=lambda: self.now_ns,
            thread_time_ns=lambda: self.now_ns,
            time_ns=lambda: self.now_ns,
        )
        monkeypatch.setattr(work, "time", clock)
        run = lane.work._runner.run

        def timed(group: Any, items: list[Any], *more: Any) -> Any:
            self.now_ns += int(len(items) * self.cost_ms[group.pipe] * 1e6)
            self.ran += [group.pipe] * len(items)
            return run(group, items, *more)

        monkeypatch.setattr(lane.work._runner, "run", timed)
        self._lane = lane

    def pass_(self, *messages: Any) -> float:
        """Run one pass of the loop and return its duration in ms."""
        before_ns = self.now_ns
        if messages:
            self._lane.work.process(messages)
        self._lane.work.poll()
        took_ms = (self.now_ns - before_ns) / 1e6
        self.longest_ms = max(self.longest_ms, took_ms)
        return took_ms


def another(lane: MemoryLane, pipe: str, tenant: str) -> None:
    lane.table.apply(PipeRecord(pipe, 1, tenant, pipe, "c1", "active", [(1, 100)]))
    lane.table.apply(PlanRecord(pipe, 1, plan().spec))


def test_batch_of_expensive_messages_does_not_outlast_the_session_timeout_of_its_lane(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """501 messages of 14 ms each, which would run for seven seconds in one pass."""
    lane = opened(tmp_path, plan())
    runs = Runs(lane, monkeypatch, p=DEAR_MS)
    runs.pass_(*(arrived(offset, b"%d" % offset) for offset in range(501)))
    while lane.work.backlog():
        runs.pass_()
    assert [int(record["value"]) for record in egress(lane)] == list(range(501))
    assert runs.longest_ms <= 2 * (1_000 * work.PASS_S + DEAR_MS) < SESSION_TIMEOUT_MS / 10


def test_sudden_rise_of_the_cost_is_noticed_within_one_chunk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    lane = opened(tmp_path, plan())
    runs = Runs(lane, monkeypatch, p=0.02)
    runs.pass_(*(arrived(offset) for offset in range(501)))
    while lane.work.backlog():
        runs.pass_()
    runs.cost_ms["p"] = DEAR_MS
    assert runs.pass_(*(arrived(offset) for offset in range(501, 1_002))) <= MOST_AT_ONCE * DEAR_MS + 50
    assert runs.pass_() <= 2 * (1_000 * work.PASS_S + DEAR_MS)


def test_tenant_with_expensive_messages_gets_no_more_time_than_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    lane = opened(tmp_path, plan())
    another(lane, "cheap", "u")
    runs = Runs(lane, monkeypatch, p=DEAR_MS, cheap=0.5)
    runs.pass_(
        *(arrived(offset) for offset in range(400)), *(arrived(offset, pipe="cheap") for offset in range(400, 1_400))
    )
    while "cheap" in Counter(runs.ran[-2_000:]) and runs.ran.count("cheap") < 1_000:
        runs.pass_()
    took = Counter(runs.ran)
    assert took["p"] * DEAR_MS == pytest.approx(took["cheap"] * 0.5, rel=0.2)


def test_tenant_gets_no_more_time_by_having_many_pipes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    lane = opened(tmp_path, plan())
    for number in range(4):
        another(lane, f"many-{number}", "u")
    runs = Runs(lane, monkeypatch, p=1.0, **{f"many-{number}": 1.0 for number in range(4)})
    batch = [arrived(offset) for offset in range(300)]
    for number in range(4):
        batch += [arrived(300 + number * 300 + one, pipe=f"many-{number}") for one in range(300)]
    runs.pass_(*batch)
    while runs.ran.count("p") < 290:
        runs.pass_()
    assert len(runs.ran) - runs.ran.count("p") == pytest.approx(runs.ran.count("p"), rel=0.1)


def test_tenant_with_a_weight_set_by_staff_gets_more_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    lane = opened(tmp_path, plan())
    another(lane, "light", "u")
    lane.table.apply(QuotaRecord("t", 1, process_weight=300))
    runs = Runs(lane, monkeypatch, p=1.0, light=1.0)
    runs.pass_(
        *(arrived(offset) for offset in range(600)), *(arrived(600 + offset, pipe="light") for offset in range(600))
    )
    while runs.ran.count("p") < 580:
        runs.pass_()
    assert runs.ran.count("p") / runs.ran.count("light") == pytest.approx(3, rel=0.15)


def test_messages_waiting_for_a_turn_are_dropped_with_their_partition(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    lane = opened(tmp_path, plan())
    runs = Runs(lane, monkeypatch, p=DEAR_MS)
    runs.pass_(*(arrived(offset, b"%d" % offset, partition=offset % 2) for offset in range(40)))
    lane.lose(0)
    while lane.work.backlog():
        runs.pass_()
    before = len(egress(lane))
    odd = [int(record["value"]) for record in egress(lane) if int(record["value"]) % 2]
    assert odd == list(range(1, 40, 2))
    assert before < 40
    assert lane.work.poll_timeout_s() > 0


def test_drain_leaves_waiting_messages_to_the_next_lane(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    lane = opened(tmp_path, plan())
    runs = Runs(lane, monkeypatch, p=DEAR_MS)
    runs.pass_(*(arrived(offset) for offset in range(40)))
    assert lane.work.backlog() > 0
    assert lane.work.in_flight() == 0
    lane.work.on_drain_timeout()
    assert lane.work.backlog() == 0
    assert runs.pass_() == 0.0


@pytest.mark.parametrize(
    ("parts", "most"), [(0, MOST_AT_ONCE), (1, MOST_AT_ONCE), (4, MOST_PARTS // 4), (100, MOST_PARTS // 100)]
)
def test_plan_of_many_steps_runs_few_messages_at_once_however_cheap_they_were(parts: int, most: int):
    steps = [{"op": "remove", "path": f"f{number}"} for number in range(parts)]
    spec = {"sources": {"shop": {}}, "destinations": {"crm": {"url": "https://crm.example/"}}, "normalize": steps}
    cost = FlowCost()
    for _ in range(20):
        cost.note(cost.at_once, 1_000)
    assert cost.chunk(compile_plan(parse_pipe_spec(spec)), 1e12) == most


def test_chunk_size_is_learned_by_doubling():
    cost, compiled = FlowCost(), compile_plan(plan().spec)
    sizes = []
    for _ in range(9):
        sizes.append(cost.chunk(compiled, 1e12))
        cost.note(sizes[-1], sizes[-1] * 20_000)
    assert sizes == [1, 2, 4, 8, 16, 32, 64, 128, 128]
    cost.note(128, 128 * 14_000_000)
    assert cost.chunk(compiled, 1e12) == 1
    assert cost.mean_ns > CHUNK_NS / 2


def test_message_beyond_its_time_limit_is_dead_at_its_node_and_others_continue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """An explode into many children, each with expensive steps: no single step is over its limit."""
    steps = [{"op": "explode", "path": "lines"}, {"op": "map", "path": "n", "expr": "body.lines + 1"}]
    lane = opened(tmp_path, plan(normalize=steps))
    spent_ns = iter(range(0, 10_000_000_000_000, 100_000_000))  # each reading of the clock adds 100 ms
    monkeypatch.setattr(budget, "time", SimpleNamespace(thread_time_ns=lambda: next(spent_ns)))
    lane.take(arrived(1, b'{"lines":%s}' % str(list(range(50))).encode()), arrived(2, b'{"lines":[7]}'))
    dead_letters = [dict(record["headers"][1:]) for record in dead(lane)]
    assert {mark["penstock-cause"] for mark in dead_letters} == {b"transform-limit"}
    assert len(dead_letters) == 50 - 20, "the children after two seconds"
    assert {mark["penstock-node"] for mark in dead_letters} == {b"normalize"}
    assert b'"n":8' in egress(lane)[-1]["value"], "the next message has its own time limit"
    lane.store()
    assert lane.unsettled() == 0


def test_only_plans_that_may_run_long_are_timed():
    spec = {"sources": {"shop": {}}, "destinations": {"crm": {"url": "https://crm.example/"}}}
    exploding = spec | {"normalize": [{"op": "explode", "path": "lines"}, {"op": "remove", "path": "x"}]}
    assert not compile_plan(parse_pipe_spec(spec | {"normalize": [{"op": "remove", "path": "x"}]})).may_take_long
    assert compile_plan(parse_pipe_spec(exploding)).may_take_long
    only = spec | {"normalize": [{"op": "explode", "path": "lines"}]}
    assert compile_plan(parse_pipe_spec(only)).may_take_long, "it has as many children, even without further steps"
