"""Which lanes the driver starts, refuses or ends, and when a lane drains on its own."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.jobs.driver_decisions import (
    BACK_OFF_CAP_S,
    DriverDecision,
    LaneName,
    back_off_s,
    driver_decision,
    free_slots,
)
from dataplane.names import LaneKind
from dataplane.runtime.lanes.context import LaneIdentity
from dataplane.runtime.lanes.lane import should_drain
from dataplane.tables.control import ControlTable
from dataplane.tables.records import CellRecord, StopRecord

ALL: dict[LaneKind, int] = {"process": 2, "transmit": 1, "transmit-retry": 1, "retrier": 1}
NAMES: list[LaneName] = [("process", 0), ("process", 1), ("transmit", 0), ("transmit-retry", 0), ("retrier", 0)]


def cell(lanes: Any = None, epoch: int = 1) -> CellRecord:
    return CellRecord("c1", 1, epoch, ALL if lanes is None else lanes, {})


def asked(**changes: Any) -> DriverDecision:
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
    return driver_decision(**situation | changes)


@given(st.integers(0, 20), st.integers(0, 6), st.lists(st.sampled_from(NAMES), unique=True))
def test_replays_get_only_slots_that_no_lane_or_query_could_use(slots: int, queries: int, running: list[LaneName]):
    free = free_slots(slots, queries, cell(), running)
    assert free == max(0, slots - queries - len(NAMES)), "also slots of lanes that wait for their restart are theirs"
    assert free_slots(slots, queries, cell({}), running) == max(0, slots - queries - len(running))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param({}, DriverDecision(False, NAMES), id="all are missing"),
        pytest.param({"running": NAMES}, DriverDecision(False, []), id="all run"),
        pytest.param({"running": NAMES[1:]}, DriverDecision(False, NAMES[:1]), id="one is missing"),
        pytest.param(
            {"running": [*NAMES, ("process", 2)]}, DriverDecision(False, []), id="one too many drains by itself"
        ),
        pytest.param(
            {"not_before": {NAMES[0]: 100.1}}, DriverDecision(False, NAMES[1:]), id="one pauses after a failure"
        ),
        pytest.param({"not_before": {NAMES[0]: 100.0}}, DriverDecision(False, NAMES), id="its pause is over"),
        pytest.param({"cell": cell({})}, DriverDecision(True, []), id="nothing is wanted"),
        pytest.param({"cell": cell(dict.fromkeys(ALL, 0))}, DriverDecision(True, []), id="none of any kind is wanted"),
        pytest.param({"cell": cell(epoch=2)}, DriverDecision(True, []), id="a higher epoch"),
        pytest.param({"cell": cell(epoch=0)}, DriverDecision(False, NAMES), id="the record of a lower epoch is old"),
        pytest.param({"stop": StopRecord("c1", 1, "mine")}, DriverDecision(True, []), id="asked to stop"),
        pytest.param(
            {"stop": StopRecord("c1", 1, "other")}, DriverDecision(False, NAMES), id="another one was asked to stop"
        ),
        pytest.param(
            {"cell": None, "stop": StopRecord("c1", 1, "mine")}, DriverDecision(True, []), id="stop without a cell"
        ),
        pytest.param({"cell": None}, DriverDecision(False, [], "no control record of the cell yet"), id="no record"),
        pytest.param(
            {"slots": 4}, DriverDecision(False, NAMES[:3], "no task slot for 2 lanes: 4 slots"), id="too few slots"
        ),
        pytest.param({"slots": 6}, DriverDecision(False, NAMES), id="just enough slots, one kept free"),
        pytest.param(
            {"slots": 3, "running": NAMES[:3]},
            DriverDecision(False, [], "no task slot for 2 lanes: 3 slots"),
            id="over-full",
        ),
    ],
)
def test_driver_decides_which_lanes_to_start_and_whether_to_end(changes: dict[str, Any], expected: DriverDecision):
    assert asked(**changes) == expected


@given(st.sets(st.sampled_from(NAMES)), st.integers(0, 8))
def test_driver_starts_no_more_lanes_than_slots_and_none_twice(running: set[Any], slots: int):
    decision = asked(running=running, slots=slots)
    assert not set(decision.start) & running
    assert len(decision.start) <= max(0, slots - 1 - len(running))
    assert bool(decision.refused) == (len(decision.start) + len(running) < len(NAMES))


@given(st.integers(0, 10_000), st.floats(0, 1))
def test_back_off_grows_to_a_cap_with_a_quarter_of_jitter(failures: int, chance: float):
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
def test_lane_drains_only_when_it_is_no_longer_wanted(record: CellRecord | None, stop: str | None, drains: bool):
    table = ControlTable()
    if record is not None:
        table.apply(record)
    if stop is not None:
        table.apply(StopRecord("c1", 1, stop))
    assert should_drain(table, LaneIdentity("c1", "process", 1, 1, "mine")) is drains
