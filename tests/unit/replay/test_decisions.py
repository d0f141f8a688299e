"""Next step of a replay."""

from typing import Any

import msgspec
import pytest

from dataplane.replay.decisions import (
    ABORTED,
    NO_SLOT,
    PAUSED,
    ReplayContext,
    next_step,
    pause_s,
    rate_of,
)
from dataplane.replay.ranges import OffsetRange, first_progress
from dataplane.replay.turns import RunStep
from dataplane.spec import parse_pipe_spec
from dataplane.tables.records import CellRecord, DestinationRecord, PipeRecord, PlanRecord
from dataplane.tables.run_notes import error_text, expiry_note
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
        pytest.param({}, {}, None, RunStep("resolve"), id="no progress yet"),
        pytest.param({}, {}, msgspec.structs.replace(HALF, ends={}), RunStep("resolve"), id="it only waited so far"),
        pytest.param({}, {}, HALF, RunStep("run"), id="something is left"),
        pytest.param({"destinations": ["crm", "out"]}, {}, HALF, RunStep("run"), id="to a topic"),
        pytest.param({}, {}, FULL, RunStep("end"), id="all is read"),
        pytest.param({"state": "ended"}, {"plan": None}, HALF, RunStep("end", ABORTED), id="aborted"),
        pytest.param({"state": "ended"}, {}, FULL, RunStep("end"), id="aborted after its last event"),
        pytest.param({"state": "paused"}, {}, HALF, RunStep("wait", PAUSED), id="paused"),
        pytest.param({"state": "paused"}, {}, None, RunStep("wait", PAUSED), id="paused before it began"),
        pytest.param(
            {}, with_crm("paused"), HALF, RunStep("wait", "the destination crm is paused"), id="paused at crm"
        ),
        pytest.param(
            {}, with_crm("suspended"), HALF, RunStep("wait", "the destination crm is suspended"), id="suspended"
        ),
        pytest.param({"rehearsal": True}, with_crm("paused"), HALF, RunStep("run"), id="a rehearsal sends nothing"),
        pytest.param({}, {"slots": 0}, HALF, RunStep("wait", NO_SLOT), id="no slot"),
        pytest.param(
            {},
            {"pipe": PipeRecord(PIPE, 1, "t", "orders", CELL, "paused", [(2, 100)])},
            HALF,
            RunStep("wait", "the pipe is paused"),
            id="its pipe is paused",
        ),
        pytest.param(
            {},
            {"pipe": PipeRecord(PIPE, 1, "t", "orders", CELL, "closed", [(2, 100)])},
            HALF,
            RunStep("end", "the pipe is closed"),
            id="its pipe is closed",
        ),
        pytest.param(
            {},
            with_crm("removed"),
            HALF,
            RunStep("end", "the destination crm does not exist any more"),
            id="removed",
        ),
        pytest.param(
            {}, {"destinations": {}}, HALF, RunStep("end", "the destination crm does not exist any more"), id="gone"
        ),
        pytest.param({}, {"plan": None}, HALF, RunStep("end", "revision 2 is not published"), id="no plan"),
        pytest.param({}, {"pipe": None}, None, RunStep("end", "revision 2 is not published"), id="no pipe"),
        pytest.param(
            {"destinations": ["x"]},
            {},
            None,
            RunStep("end", "revision 2 has no destination x"),
            id="not of the revision",
        ),
        pytest.param({"destinations": []}, {}, None, RunStep("end", "no destination is chosen"), id="no destination"),
        pytest.param(
            {"destinations": ["lake"]},
            {},
            None,
            RunStep("end", "the destination lake is not of type http, s3, postgres or topic"),
            id="a lake",
        ),
        pytest.param(
            {},
            {"has_salt": False},
            HALF,
            RunStep("end", "the secret of the revision's hash steps cannot be decrypted"),
            id="salt",
        ),
        pytest.param(
            {},
            {},
            first_progress("rep_1", [OffsetRange(("penstock.c1.ingest.g9", 0), 3, 9)], 1),
            RunStep("end", "the events are no longer in the pipe's cell"),
            id="the topic was recreated",
        ),
    ],
)
def test_next_step(fields: dict[str, Any], changes: dict[str, Any], progress: Any, step: RunStep):
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
