"""Next step of a replay, and whose turn it is."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.replay.decisions import (
    ABORTED,
    NO_SLOT,
    PAUSED,
    ReplayContext,
    ReplayStep,
    WaitingReplay,
    behind_others,
    error_text,
    expiry_note,
    next_step,
    next_turn,
    pause_s,
    rate_of,
)
from dataplane.replay.ranges import OffsetRange, first_progress
from dataplane.spec import parse_pipe_spec
from dataplane.tables.records import CellRecord, DestinationRecord, PipeRecord, PlanRecord
from tests.support.replaying import CELL, INGEST, PIPE, TOPICS, replay

SPEC = parse_pipe_spec(
    {
        "sources": {"shop": {}},
        "destinations": {
            "crm": {"type": "http", "url": "https://crm.example"},
            "out": {"type": "topic"},
            "lake": {"type": "lake"},
        },
    }
)
CELL_RECORD = CellRecord(CELL, 1, 1, {}, TOPICS)
HALF = first_progress("rep_1", [OffsetRange((INGEST, 0), 3, 9)], 1)
FULL = first_progress("rep_1", [OffsetRange((INGEST, 0), 9, 9)], 1)


def destination(name: str, state: Any = "active") -> DestinationRecord:
    return DestinationRecord(PIPE, name, 1, state, SPEC.destinations[name], [])


def context(**changes: Any) -> ReplayContext:
    now = ReplayContext(
        cell=CELL_RECORD,
        pipe=PipeRecord(PIPE, 1, "t", "orders", CELL, "active", [(2, 100)]),
        plan=PlanRecord(PIPE, 2, SPEC),
        destinations={name: destination(name) for name in ("crm", "out", "lake")},
        has_salt=True,
        slots=2,
    )
    return msgspec.structs.replace(now, **changes)


def with_crm(state: str) -> dict[str, Any]:
    return {"destinations": {"crm": destination("crm", state)}}


@pytest.mark.parametrize(
    ("fields", "changes", "progress", "step"),
    [
        pytest.param({}, {}, None, ReplayStep("resolve"), id="no progress yet"),
        pytest.param({}, {}, msgspec.structs.replace(HALF, ends={}), ReplayStep("resolve"), id="it only waited so far"),
        pytest.param({}, {}, HALF, ReplayStep("run"), id="something is left"),
        pytest.param({"destinations": ["crm", "out"]}, {}, HALF, ReplayStep("run"), id="to a topic"),
        pytest.param({}, {}, FULL, ReplayStep("end"), id="all is read"),
        pytest.param({"state": "ended"}, {"plan": None}, HALF, ReplayStep("end", ABORTED), id="aborted"),
        pytest.param({"state": "ended"}, {}, FULL, ReplayStep("end"), id="aborted after its last event"),
        pytest.param({"state": "paused"}, {}, HALF, ReplayStep("wait", PAUSED), id="paused"),
        pytest.param({"state": "paused"}, {}, None, ReplayStep("wait", PAUSED), id="paused before it began"),
        pytest.param(
            {}, with_crm("paused"), HALF, ReplayStep("wait", "the destination crm is paused"), id="paused at crm"
        ),
        pytest.param(
            {}, with_crm("suspended"), HALF, ReplayStep("wait", "the destination crm is suspended"), id="suspended"
        ),
        pytest.param({"rehearsal": True}, with_crm("paused"), HALF, ReplayStep("run"), id="a rehearsal sends nothing"),
        pytest.param({}, {"slots": 0}, HALF, ReplayStep("wait", NO_SLOT), id="no slot"),
        pytest.param(
            {},
            {"pipe": PipeRecord(PIPE, 1, "t", "orders", CELL, "paused", [(2, 100)])},
            HALF,
            ReplayStep("wait", "the pipe is paused"),
            id="its pipe is paused",
        ),
        pytest.param(
            {},
            {"pipe": PipeRecord(PIPE, 1, "t", "orders", CELL, "closed", [(2, 100)])},
            HALF,
            ReplayStep("end", "the pipe is closed"),
            id="its pipe is closed",
        ),
        pytest.param(
            {},
            with_crm("removed"),
            HALF,
            ReplayStep("end", "the destination crm does not exist any more"),
            id="removed",
        ),
        pytest.param(
            {}, {"destinations": {}}, HALF, ReplayStep("end", "the destination crm does not exist any more"), id="gone"
        ),
        pytest.param({}, {"plan": None}, HALF, ReplayStep("end", "revision 2 is not published"), id="no plan"),
        pytest.param({}, {"pipe": None}, None, ReplayStep("end", "revision 2 is not published"), id="no pipe"),
        pytest.param(
            {"destinations": ["x"]},
            {},
            None,
            ReplayStep("end", "revision 2 has no destination x"),
            id="not of the revision",
        ),
        pytest.param(
            {"destinations": []}, {}, None, ReplayStep("end", "no destination is chosen"), id="no destination"
        ),
        pytest.param(
            {"destinations": ["lake"]},
            {},
            None,
            ReplayStep("end", "the destination lake is not of type http or topic"),
            id="a lake",
        ),
        pytest.param(
            {},
            {"has_salt": False},
            HALF,
            ReplayStep("end", "the secret of the revision's hash steps cannot be decrypted"),
            id="salt",
        ),
        pytest.param(
            {},
            {},
            first_progress("rep_1", [OffsetRange(("penstock.c1.ingest.g9", 0), 3, 9)], 1),
            ReplayStep("end", "the events are no longer in the pipe's cell"),
            id="the topic was recreated",
        ),
    ],
)
def test_next_step(fields: dict[str, Any], changes: dict[str, Any], progress: Any, step: ReplayStep):
    assert next_step(replay(**fields), progress, context(**changes)) == step


def test_invalid_expression_is_refused():
    step = next_step(replay(where="body.("), None, context())
    assert step.action == "end"
    assert step.reason.startswith("the expression is invalid: ")


def test_replay_leaves_half_of_a_destination_s_rate_limit_to_live_messages():
    limited = parse_pipe_spec(
        {
            "sources": {"shop": {}},
            "destinations": {"crm": {"type": "http", "url": "https://crm.example", "rate_per_s": 10}},
        }
    ).destinations["crm"]
    crm = DestinationRecord(PIPE, "crm", 1, "active", limited, [])
    assert rate_of(replay(rate_per_s=50), [destination("out"), crm, None]) == 5
    assert rate_of(replay(rate_per_s=2), [crm]) == 2
    assert rate_of(replay(rate_per_s=50), [destination("crm"), destination("out")]) == 50


REPLAYS = st.lists(
    st.builds(
        WaitingReplay,
        st.text("abc", min_size=1),
        st.sampled_from(["t1", "t2", "t3"]),
        st.integers(0, 3),
        st.floats(0, 10),
        st.floats(0, 10),
    ),
    unique_by=lambda one: one.replay,
)


@given(REPLAYS, st.floats(0, 10))
def test_turn_is_of_the_first_replay_of_its_tenant_and_due(replays: list[WaitingReplay], now_s: float):
    turn = next_turn(replays, now_s)
    behind = behind_others(replays)
    first = [one for one in replays if one.replay not in behind]
    assert len({one.tenant for one in first}) == len(first) == len({one.tenant for one in replays})
    due = [one for one in first if one.due_s <= now_s]
    assert bool(turn) == bool(due)
    if turn:
        (taken,) = (one for one in due if one.replay == turn)
        assert all(taken.last_s <= one.last_s for one in due)
    for one in replays:
        if one.replay in behind:
            (ahead,) = (other for other in first if other.tenant == one.tenant)
            assert (ahead.bucket, ahead.replay) < (one.bucket, one.replay)
            assert ahead.replay in behind[one.replay]


def test_tenants_take_turns_so_that_a_slow_replay_delays_no_other():
    slow, other = WaitingReplay("a", "t1", 1, 50.0, 10.0), WaitingReplay("b", "t2", 2, 0.0, 20.0)
    assert next_turn([slow, other], 30.0) == "b"
    assert next_turn([slow, other], 60.0) == "a"


def test_pause_keeps_the_rate_over_the_whole_time():
    assert pause_s(100, 10.0, 4.0) == 6.0
    assert pause_s(100, 10.0, 40.0) == 0.0


def test_note_on_deleted_events_stays_while_other_reasons_change():
    note = expiry_note(1_795_262_399_000_001)
    assert note == "events before 2026-11-21T12:00:00Z are no longer retained"
    assert expiry_note(0) == ""
    waits = error_text(note, PAUSED)
    assert waits == f"{note}; paused"
    assert error_text(waits, "") == note
    assert error_text(waits, "", expiry_note(1_795_262_460_000_000)).startswith("events before 2026-11-21T12:01:00Z")
    assert error_text(PAUSED, "") == ""
