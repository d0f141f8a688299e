"""Unexpected errors of a stage: its message is dead-lettered, and the lane and other messages continue."""

import logging
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

import dataplane.plan.stage as stage_module
from dataplane.plan import CompiledPlan, StageError
from dataplane.plan.enrich import CompiledEnrich
from dataplane.stages.enrich import EmptyTables
from tests.support.memory_lane import MemoryLane
from tests.support.process_lane import arrived, dead, egress, opened, plan

CAST = {"op": "cast", "path": "n", "to": "int"}
SPEC: dict[str, Any] = {
    "normalize": [CAST, {"op": "explode", "path": "l"}, {"op": "cast", "path": "l.m", "to": "int"}],
    "routes": {"rules": [{"when": "body.l.m > 0", "to": ["crm"]}]},
    "transform": {"crm": [{"op": "cast", "path": "l.m", "to": "int"}]},
}
BAD = b'{"n":1,"l":[{"m":666}]}'
GOOD = b'{"n":1,"l":[{"m":7}]}'


def fails_on_bad(wrapped: Callable[..., Any], failure: Exception) -> Callable[..., Any]:
    """Wrap a function so that it fails for the bad event."""

    def function(value: Any, *rest: Any, **named: Any) -> Any:
        if "666" in str(value):
            raise failure
        return wrapped(value, *rest, **named)

    return function


def break_edit(made: CompiledPlan, failure: Exception) -> None:
    made.normalize.before._edits[0] = fails_on_bad(made.normalize.before._edits[0], failure)


def break_edit_after_explode(made: CompiledPlan, failure: Exception) -> None:
    made.normalize.after._edits[0] = fails_on_bad(made.normalize.after._edits[0], failure)


def break_route(made: CompiledPlan, failure: Exception) -> None:
    assert made.route is not None
    ((when, to),) = made.route._rules
    broken = cast(Any, SimpleNamespace(test=fails_on_bad(when.test, failure)))  # slots: an expression cannot be patched
    made.route._rules = [(broken, to)]


def break_transform(made: CompiledPlan, failure: Exception) -> None:
    stage = made.transform["crm"].before
    stage._edits[0] = fails_on_bad(stage._edits[0], failure)


def opened_with(tmp_path: Path, breaks: Callable[[CompiledPlan, Exception], None], failure: Exception) -> MemoryLane:
    lane = opened(tmp_path, plan(**SPEC))
    found = lane.work._runner._plans.find("p", 1)
    assert found is not None
    breaks(found, failure)
    return lane


EVERYWHERE = pytest.mark.parametrize("breaks", [break_edit, break_edit_after_explode, break_route, break_transform])


@EVERYWHERE
def test_internal_error_dead_letters_only_its_message_and_the_lane_continues(
    tmp_path: Path, breaks: Callable[[CompiledPlan, Exception], None], caplog: pytest.LogCaptureFixture
):
    lane = opened_with(tmp_path, breaks, KeyError("planted"))
    with caplog.at_level(logging.ERROR):
        lane.take(arrived(0, GOOD), arrived(1, BAD), arrived(2, BAD), arrived(3, GOOD))
    assert [record["value"] for record in egress(lane)] == [b'{"n":1,"l":{"m":7}}'] * 2
    causes = [dict(record["headers"][1:])["penstock-cause"] for record in dead(lane)]
    assert causes == [b"internal-error"] * 2
    lane.store()
    assert lane.unsettled() == 0
    (logged,) = caplog.records
    assert logged.exc_info is not None
    assert isinstance(logged.exc_info[1], KeyError), "the traceback is logged once"


@EVERYWHERE
def test_memory_error_dead_letters_no_message(tmp_path: Path, breaks: Callable[[CompiledPlan, Exception], None]):
    lane = opened_with(tmp_path, breaks, MemoryError())
    with pytest.raises(MemoryError):
        lane.take(arrived(0, GOOD), arrived(1, BAD))
    assert not dead(lane)


@pytest.mark.parametrize(("name", "node"), [("decode_json", b"normalize"), ("explode", b"normalize")])
def test_internal_error_in_decode_or_explode_dead_letters_only_its_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, node: bytes
):
    lane = opened(tmp_path, plan(**SPEC))
    monkeypatch.setattr(stage_module, name, fails_on_bad(getattr(stage_module, name), ValueError("planted")))
    lane.take(arrived(0, GOOD), arrived(1, BAD))
    assert len(egress(lane)) == 1
    (record,) = dead(lane)
    found = dict(record["headers"][1:])
    assert (found["penstock-cause"], found["penstock-node"]) == (b"internal-error", node)


def test_internal_error_in_a_look_up_fails_only_its_message():
    stage = CompiledEnrich.__new__(CompiledEnrich)
    stage._tables, stage._joins = ["shops"], [fails_on_bad(lambda *_: None, KeyError("planted"))]
    with pytest.raises(StageError, match=r"internal-error: enrich\[0\] shops: internal error of Penstock"):
        stage(BAD, EmptyTables())
