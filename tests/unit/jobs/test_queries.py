"""Streaming queries: which ones the plans of a cell need, and when one refuses to start."""

from pathlib import Path
from typing import Any

import pytest

from dataplane.jobs.driver_decisions import driver_decision
from dataplane.jobs.journal import JournalledTopic
from dataplane.jobs.queries import (
    Query,
    QueryStart,
    QuerySupervisor,
    RequiredQueries,
    checkpoint_of,
    refusal_of,
    running_state,
)
from dataplane.names import LANE_KINDS, Purpose
from dataplane.runtime.settings import settings_from
from dataplane.spec import PipeSpec, parse_pipe_spec
from dataplane.tables.control import ControlTable
from dataplane.tables.records import CellRecord, PipeRecord, PlanRecord, TopicRecord

BEGINNING = JournalledTopic({0: 0, 1: 0}, has_read=False)
FURTHER = JournalledTopic({0: 7, 1: 9}, has_read=True)


class Counting:
    """Query that pipes need which have a source of its name."""

    reads: Purpose = "ingest"
    has_state = True
    tasks = 2

    def __init__(self, name: str = "counting", *, may_forget: bool = False) -> None:
        self.name, self.may_forget = name, may_forget

    def is_needed_by(self, spec: PipeSpec) -> bool:
        return self.name in spec.sources

    def start(self, spark: Any, start: QueryStart) -> Any:
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError


def plan(pipe: str, revision: int, source: str) -> PlanRecord:
    return PlanRecord(
        pipe, revision, parse_pipe_spec({"sources": {source: {}}, "destinations": {"d": {"url": "https://d.example"}}})
    )


def pipe(name: str, cell: str, version: int = 1) -> PipeRecord:
    return PipeRecord(name, version, "ten", name, cell, "active", [(1, 100)])


@pytest.mark.parametrize(
    ("may_forget", "journalled", "has_checkpoint", "reason"),
    [
        pytest.param(False, FURTHER, True, "", id="a checkpoint is all it needs"),
        pytest.param(False, None, True, "", id="a checkpoint without a journal"),
        pytest.param(False, BEGINNING, False, "", id="the first start"),
        pytest.param(True, FURTHER, False, "", id="it may forget: it goes on where the journal ends"),
        pytest.param(False, FURTHER, False, "its checkpoint is gone", id="it may not forget"),
        pytest.param(True, None, False, "neither a checkpoint nor a journal", id="nobody knows where to begin"),
    ],
)
def test_query_refuses_to_start_if_it_would_lose_its_state(
    may_forget: bool, journalled: JournalledTopic | None, has_checkpoint: bool, reason: str
):
    said = refusal_of(Counting(may_forget=may_forget), journalled, has_checkpoint=has_checkpoint)
    assert said.startswith(reason)
    assert bool(said) == bool(reason)


def test_cell_runs_every_query_that_a_plan_of_its_pipes_needs():
    table = ControlTable()
    counting: list[Query] = [Counting("counting"), Counting("other")]
    table.apply(plan("p1", 1, "counting"))
    asked = RequiredQueries(table, counting)
    assert asked.of_cell("c1") == [], "the cell of the pipe is not known yet"
    table.apply(pipe("p1", "c1"))
    table.apply(plan("p2", 1, "plain"))
    table.apply(pipe("p2", "c2"))
    assert [query.name for query in asked.of_cell("c1")] == ["counting"]
    assert asked.of_cell("c2") == []


def test_older_revision_that_needs_a_query_keeps_it():
    table = ControlTable()
    asked = RequiredQueries(table, [Counting()])
    for record in (pipe("p1", "c1"), plan("p1", 1, "counting"), plan("p1", 2, "plain")):
        table.apply(record)
    assert [query.name for query in asked.of_cell("c1")] == ["counting"]


@pytest.mark.parametrize("partitions", ["", "4"])
def test_state_partitions_leave_task_slots_to_every_kind_of_lane(partitions: str):
    table, names = ControlTable(), ["dedup", "windows", "sequence", "lake"]
    queries: list[Query] = [Counting(name) for name in names]
    settings = settings_from({"PENSTOCK_STATE_PARTITIONS": partitions})
    supervisor = QuerySupervisor(None, settings, table, queries)
    for number, name in enumerate(names):
        table.apply(plan(f"p{number}", 1, name))
        table.apply(pipe(f"p{number}", "c1"))
    assert supervisor.tasks("c1") == 2 * len(names)
    decision = driver_decision(
        cell=CellRecord("c1", 1, 1, dict.fromkeys(LANE_KINDS, 1), {}),
        stop=None,
        epoch=1,
        incarnation="i",
        running=(),
        not_before={},
        now=0,
        slots=16 - supervisor.tasks("c1"),
    )
    assert (len(decision.start), decision.refused) == (len(LANE_KINDS), "")


@pytest.mark.parametrize(
    ("has_started", "read_up_to", "not_rescaled", "state"),
    [
        (False, "", "", "starting"),
        (True, "", "", "running"),
        (True, '{"t":{"0":7}}', "", 'running, read up to {"t":{"0":7}}'),
        (True, "", "OSError: disk full", "running; keeps its state partitions: OSError: disk full"),
    ],
)
def test_state_of_a_query_names_a_failed_rescaling(has_started: bool, read_up_to: str, not_rescaled: str, state: str):
    assert running_state(has_started, read_up_to, not_rescaled) == state


def test_journalled_offsets_are_the_starting_offsets_of_spark():
    assert FURTHER.starting("penstock.c1.ingest.g1") == '{"penstock.c1.ingest.g1":{"0":7,"1":9}}'


def test_new_generation_of_the_topic_gets_its_own_checkpoint(tmp_path: Path):
    cells = [CellRecord("c1", 1, 1, {}, {"ingest": TopicRecord("t", generation, 4, "")}) for generation in (1, 2)]
    first, second = (checkpoint_of(tmp_path, cell, Counting()) for cell in cells)
    assert first != second
    assert first.is_relative_to(tmp_path / "data" / "checkpoints" / "c1")
