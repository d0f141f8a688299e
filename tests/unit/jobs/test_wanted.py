"""Which lanes the driver starts, refuses or ends, and when a lane drains by itself."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.jobs.wanted import BACK_OFF_CAP_S, Decision, LaneName, back_off_s, decide
from dataplane.names import LaneKind
from dataplane.runtime.lane import LaneIdentity, should_drain
from dataplane.tables.control import ControlTable
from dataplane.tables.records import CellRecord, StopRecord

ALL: dict[LaneKind, int] = {"process": 2, "transmit": 1, "transmit-retry": 1, "retrier": 1}
NAMES: list[LaneName] = [("process", 0), ("process", 1), ("transmit", 0), ("transmit-retry", 0), ("retrier", 0)]


def cell(lanes: Any = None, epoch: int = 1) -> CellRecord:
    return CellRecord("c1", 1, epoch, ALL if lanes is None else lanes, {})


def asked(**changes: Any) -> Decision:
    situation: dict[str, Any] = {
        "cell": cell(),
        "stop": None,
        "epoch": 1,
        "incarnation": "mine",
        "running": [],
        "not_before": {},
        "now": 100.0,
        "slots": 16,
    }
    return decide(**situation | changes)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param({}, Decision(False, NAMES), id="all are missing"),
        pytest.param({"running": NAMES}, Decision(False, []), id="all run"),
        pytest.param({"running": NAMES[1:]}, Decision(False, NAMES[:1]), id="one is missing"),
        pytest.param({"running": [*NAMES, ("process", 2)]}, Decision(False, []), id="one too many drains by itself"),
        pytest.param({"not_before": {NAMES[0]: 100.1}}, Decision(False, NAMES[1:]), id="one pauses after a failure"),
        pytest.param({"not_before": {NAMES[0]: 100.0}}, Decision(False, NAMES), id="its pause is over"),
        pytest.param({"cell": cell({})}, Decision(True, []), id="nothing is wanted"),
        pytest.param({"cell": cell(dict.fromkeys(ALL, 0))}, Decision(True, []), id="none of any kind is wanted"),
        pytest.param({"cell": cell(epoch=2)}, Decision(True, []), id="a higher epoch"),
        pytest.param({"cell": cell(epoch=0)}, Decision(False, NAMES), id="the record of a lower epoch is old"),
        pytest.param({"stop": StopRecord("c1", 1, "mine")}, Decision(True, []), id="asked to stop"),
        pytest.param(
            {"stop": StopRecord("c1", 1, "other")}, Decision(False, NAMES), id="another one was asked to stop"
        ),
        pytest.param({"cell": None, "stop": StopRecord("c1", 1, "mine")}, Decision(True, []), id="stop without a cell"),
        pytest.param({"cell": None}, Decision(False, [], "no record of the cell yet"), id="no record"),
        pytest.param({"slots": 4}, Decision(False, NAMES[:3], "no task slot for 2 lanes: 4 slots"), id="too few slots"),
        pytest.param({"slots": 6}, Decision(False, NAMES), id="just enough slots, one kept free"),
        pytest.param(
            {"slots": 3, "running": NAMES[:3]}, Decision(False, [], "no task slot for 2 lanes: 3 slots"), id="over-full"
        ),
    ],
)
def test_what_the_driver_does(changes: dict[str, Any], expected: Decision):
    assert asked(**changes) == expected


@given(st.sets(st.sampled_from(NAMES)), st.integers(0, 8))
def test_never_more_lanes_than_slots_and_none_twice(running: set[Any], slots: int):
    decision = asked(running=running, slots=slots)
    assert not set(decision.start) & running
    assert len(decision.start) <= max(0, slots - 1 - len(running))
    assert bool(decision.refused) == (len(decision.start) + len(running) < len(NAMES))


@given(st.integers(0, 10_000), st.floats(0, 1))
def test_pauses_grow_to_a_cap_with_a_quarter_of_jitter(failures: int, chance: float):
    pause_s = back_off_s(failures, chance)
    assert 0.75 * min(2.0 ** min(failures, 10), BACK_OFF_CAP_S) <= pause_s <= BACK_OFF_CAP_S


@pytest.mark.parametrize(
    ("record", "stop", "drains"),
    [
        pytest.param(None, None, False, id="a cell it knows nothing of stays as it is"),
        pytest.param(cell(), None, False, id="it is wanted"),
        pytest.param(cell({"process": 1}), None, True, id="its number is too high now"),
        pytest.param(cell({"transmit": 9}), None, True, id="its kind is not wanted"),
        pytest.param(cell(epoch=2), None, True, id="a higher epoch"),
        pytest.param(cell(epoch=0), None, False, id="a lower epoch"),
        pytest.param(cell(), "mine", True, id="its application is to end"),
        pytest.param(None, "mine", True, id="its application is to end, the cell unknown"),
        pytest.param(cell(), "other", False, id="another application is to end"),
    ],
)
def test_when_a_lane_drains(record: CellRecord | None, stop: str | None, drains: bool):
    table = ControlTable()
    if record is not None:
        table.apply(record)
    if stop is not None:
        table.apply(StopRecord("c1", 1, stop))
    assert should_drain(table, LaneIdentity("c1", "process", 1, 1, "mine")) is drains
