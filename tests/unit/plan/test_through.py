"""A batch job and a process lane make the same bytes of a message, because they run the same stages."""

from pathlib import Path
from typing import Any

import pytest

from dataplane.causes import Cause
from dataplane.ledger.meta import MessageMeta, read_meta
from dataplane.plan import StageError, compile_plan
from dataplane.plan.through import EndedUnit, pass_through, through
from dataplane.stages.enrich import EmptyTables
from tests.support import process_lane

NAMES = ("crm", "lake")
TO_INT = {"op": "cast", "path": "a", "to": "int"}
EXPLODE = {"op": "explode", "path": "lines"}
CASES = [
    pytest.param({}, [b'{"a": 1}', b"no JSON"], id="bytes pass untouched"),
    pytest.param(
        {"normalize": [{"op": "cast", "path": "n", "to": "decimal"}]}, [b'{"n":"12.50"}', b'{"n":"x"}'], id="decimals"
    ),
    pytest.param(
        {"normalize": [{"op": "cast", "path": "n", "to": "decimal"}], "destinations": ("lake",)},
        [b'{"n":"12.50"}'],
        id="decimals, one way",
    ),
    pytest.param(
        {"normalize": [{"op": "filter", "when": "body.a > 1"}]}, [b'{"a":1}', b'{"a":2}', b"{}", b"["], id="filter"
    ),
    pytest.param(
        {"normalize": [EXPLODE, {"op": "filter", "when": "body.lines != 2"}, {"op": "set", "path": "x", "value": 1}]},
        [b'{"lines":[1,2,3]}', b'{"lines":[]}', b'{"lines":7}', b'{"lines":["a",4]}'],
        id="explode",
    ),
    pytest.param(
        {
            "routes": {"rules": [{"when": "body.a == 1", "to": [*NAMES]}, {"when": "body.a == 2", "to": ["lake"]}]},
            "transform": {"lake": [{"op": "map", "path": "b", "expr": "body.a + 1"}, TO_INT]},
        },
        [b'{"a":1}', b'{"a":2.0}', b'{"a":3}', b"{}"],
        id="routes and steps of one destination",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "bodies"), CASES)
def test_lane_and_batch_produce_the_same_messages(tmp_path: Path, fields: dict[str, Any], bodies: list[bytes]):
    record = process_lane.plan(**{"destinations": NAMES, **fields})
    lane = process_lane.opened(tmp_path, record)
    messages = [process_lane.arrived(number, body) for number, body in enumerate(bodies)]
    lane.take(*messages)
    by_lane = {_reported(read_meta(one["headers"]), one["value"]) for one in process_lane.egress(lane)}
    plan, tables = compile_plan(record.spec), EmptyTables()
    by_batch = {
        _reported(unit, body)
        for message in messages
        for name in plan.destinations
        for unit, body in through(plan, name, read_meta(message.headers()), message.value(), tables)
    }
    assert by_batch == by_lane
    assert by_lane
    at_once = {
        _reported(unit, body)
        for message in messages
        for unit, body in pass_through(
            plan, plan.destinations, read_meta(message.headers()), message.value(), tables
        ).sent
    }
    assert at_once == by_lane, "one pass for all destinations, and one pass for each"


@pytest.mark.parametrize(
    ("more", "node"),
    [
        pytest.param({}, "normalize", id="nothing reads the body after normalize"),
        pytest.param({"transform": {"crm": [TO_INT]}}, "transform:crm", id="a later stage does"),
    ],
)
def test_body_that_cannot_be_written_is_dead_where_a_lane_writes_it(
    monkeypatch: pytest.MonkeyPatch, more: dict[str, Any], node: str
):
    def fail(_value: Any, where: str) -> bytes:
        raise StageError(Cause.ENCODE, where)

    monkeypatch.setattr("dataplane.plan.through.encode", fail)
    set_ = {"op": "set", "path": "b", "value": 1}
    plan = compile_plan(process_lane.plan(normalize=[set_], **more).spec)
    message = process_lane.arrived(1, b'{"a":"1"}')
    passage = pass_through(plan, plan.destinations, read_meta(message.headers()), message.value(), EmptyTables())
    assert passage.ended == [EndedUnit(node, "dead", Cause.ENCODE, 0)]
    assert passage.passed == ([] if node == "normalize" else [0])


def _reported(meta: MessageMeta, body: bytes) -> tuple[str, str, int, bytes]:
    return meta.destination, meta.id, meta.child, body
