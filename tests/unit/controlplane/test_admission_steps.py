"""Next step of the admission of a pipe by shares."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from controlplane.provisioner.admitting import (
    PENSTOCK,
    AdmitShare,
    FinishAdmission,
    KeepAdmission,
    PipeAdmission,
    ReduceAdmission,
    StartAdmission,
    next_step,
)
from mgmt.ramps.admission_schedule import AdmissionPolicy, admission_steps, filed_under, first_admitted
from mgmt.ramps.queries import RampFigures

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
POLICY = AdmissionPolicy(hold=timedelta(seconds=30), evidence=20, patience=timedelta(minutes=5))
HEALTHY = RampFigures(taken=100)
VIEW = PipeAdmission("p", "c1", True, 20, NOW - timedelta(seconds=40), "", "", HEALTHY, beyond=500)


@pytest.mark.parametrize(
    ("changed", "step"),
    [
        pytest.param({}, AdmitShare(50), id="the next share"),
        pytest.param({"share": 50}, AdmitShare(100), id="the last share"),
        pytest.param({"share": 100, "beyond": 0}, FinishAdmission(), id="all keys are admitted"),
        pytest.param(
            {"share": 100, "waiting": 7},
            KeepAdmission("100 % of its keys are admitted; their held messages are being released"),
            id="held messages are being released",
        ),
        pytest.param({"step_at": None, "figures": RampFigures()}, StartAdmission(), id="something is held"),
        pytest.param({"step_at": None, "beyond": 0}, StartAdmission(), id="something has passed"),
        pytest.param(
            {"step_at": None, "beyond": 0, "figures": RampFigures()},
            KeepAdmission("20 % of its keys are admitted; it waits for its first messages"),
            id="no message yet",
        ),
        pytest.param(
            {"step_at": NOW - timedelta(seconds=10)},
            KeepAdmission("20 % of its keys are admitted until 12:00:20 UTC"),
            id="before the minimum duration",
        ),
        pytest.param(
            {"figures": RampFigures(taken=19)},
            KeepAdmission("20 % of its keys are admitted until 20 messages have been processed, or until 12:04:20 UTC"),
            id="too few messages to judge",
        ),
        pytest.param(
            {"figures": RampFigures(taken=19), "step_at": NOW - timedelta(minutes=6)},
            AdmitShare(50),
            id="patience is over",
        ),
        pytest.param({"figures": RampFigures(taken=100, failed=5)}, AdmitShare(50), id="a few fail"),
        pytest.param(
            {"figures": RampFigures(taken=100, failed=6), "share": 50},
            ReduceAdmission(20, "6 of 100 messages failed while 50 % of its keys were admitted"),
            id="too many fail",
        ),
        pytest.param(
            {"figures": RampFigures(taken=3, failed=3), "step_at": NOW},
            ReduceAdmission(0, "3 of 3 messages failed while 20 % of its keys were admitted"),
            id="too many fail at once",
        ),
        pytest.param(
            {"figures": RampFigures(taken=100, lost=1)},
            ReduceAdmission(0, "1 of 100 messages were lost while 20 % of its keys were admitted"),
            id="one is lost",
        ),
        pytest.param(
            {"figures": RampFigures(taken=100, stuck=9)},
            ReduceAdmission(0, "9 of 100 messages have not reached the route while 20 % of its keys were admitted"),
            id="some are stuck",
        ),
        pytest.param(
            {"held_by": PENSTOCK, "reason": "why", "figures": RampFigures(taken=9, failed=9)},
            KeepAdmission("why"),
            id="held by Penstock after a reduction",
        ),
        pytest.param(
            {"held_by": "bob"}, KeepAdmission("20 % of its keys are admitted: held by bob"), id="a person holds it"
        ),
        pytest.param({"share": 0}, AdmitShare(20), id="resumed at 0 %"),
        pytest.param(
            {"active": False},
            KeepAdmission("20 % of its keys are admitted until the pipe is active again"),
            id="paused",
        ),
    ],
)
def test_admission_decides_the_next_step(changed: dict[str, Any], step: object):
    assert next_step(msgspec.structs.replace(VIEW, **changed), POLICY, NOW) == step


@pytest.mark.parametrize(("expected", "share"), [(0, 100), (500, 100), (501, 20)])
def test_only_a_pipe_with_high_expected_traffic_is_admitted_by_shares(expected: int, share: int):
    assert first_admitted(POLICY, expected) == share


@pytest.mark.parametrize("text", ["20,50", "50,20,100", "25,100", "0,100", "20,20,100", "x"])
def test_admission_steps_must_be_growing_multiples_of_ten_up_to_100(text: str):
    with pytest.raises(ValueError, match=r"PENSTOCK_ADMISSION_STEPS|invalid literal"):
        admission_steps(text)


def test_held_messages_are_filed_under_the_share_that_admits_them():
    assert [filed_under(share) for share in (0, 1, 10, 11, 91, 100)] == ["", "010", "010", "020", "100", "100"]
    for share in (20, 50, 100):
        admitted = {lot for lot in range(100) if filed_under(lot + 1) <= filed_under(share)}
        assert admitted == set(range(share))
