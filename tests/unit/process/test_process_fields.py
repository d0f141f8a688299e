"""Field samples in a process lane: of messages as they arrive, and without an effect on their processing."""

from pathlib import Path
from typing import Any

import pytest

from dataplane.ledger.fields import FieldCount
from tests.support.memory_lane import MemoryLane
from tests.support.process_lane import arrived, dead, egress, opened, plan

REMOVE = {"op": "remove", "path": "note"}
MASK = {"op": "mask", "path": "note", "how": "redact"}


def told(lane: MemoryLane) -> dict[str, FieldCount]:
    lane.fields.hasten()
    (sample,) = lane.fields.take_if_due()
    assert (sample.pipe, sample.source) == ("p", "shop")
    return {one.path: one for one in sample.fields}


def test_message_is_sampled_before_the_steps_and_processed_as_usual(tmp_path: Path):
    lane = opened(tmp_path, plan(normalize=[REMOVE]))
    lane.take(arrived(5, b'{"note":"x","n":1}'))
    assert set(told(lane)) == {"$", "note", "n"}
    assert [record["value"] for record in egress(lane)] == [b'{"n":1}']


@pytest.mark.parametrize("fields", [{}, {"transform": {"crm": [REMOVE]}}], ids=["no step", "a step behind the route"])
def test_body_that_no_step_reads_passes_byte_for_byte(tmp_path: Path, fields: dict[str, Any]):
    lane = opened(tmp_path, plan(destinations=("crm", "lake"), **fields))
    lane.take(arrived(5, b'{ "n" : 1 }'))
    assert set(told(lane)) == {"$", "n"}
    assert b'{ "n" : 1 }' in [record["value"] for record in egress(lane)]


def test_body_that_is_not_json_is_sampled_and_dead_as_before(tmp_path: Path):
    lane = opened(tmp_path, plan(normalize=[REMOVE]))
    lane.take(arrived(5, b"n=1"))
    assert told(lane)["$"].types == {"no JSON": 1}
    assert len(dead(lane)) == 1


@pytest.mark.parametrize(
    "fields", [{"normalize": [MASK]}, {"transform": {"crm": [MASK]}}], ids=["normalize", "transform"]
)
def test_pipe_with_a_mask_step_has_no_values_counted(tmp_path: Path, fields: dict[str, Any]):
    lane = opened(tmp_path, plan(**fields))
    lane.take(arrived(5, b'{"note":"x","kind":"a"}'))
    assert {one.values is None for one in told(lane).values()} == {True}
