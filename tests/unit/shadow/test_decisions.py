"""Next step of a shadow run, the size of its jobs, and the time up to which it has compared."""

from typing import Any

import msgspec
import pytest

from dataplane.replay.decisions import ABORTED, NO_SLOT
from dataplane.replay.ranges import OffsetRange
from dataplane.replay.turns import RunStep
from dataplane.shadow.decisions import (
    FEWEST_AT_END,
    FIRST_RECORDS,
    MOST_BYTES,
    MOST_EVENTS,
    MOST_RECORDS,
    SENT_S,
    ShadowContext,
    compared_until,
    next_shadow_step,
    next_size,
    size_after,
    size_after_failure,
    with_ends,
)
from dataplane.shadow.result import first_shadow_progress
from dataplane.tables.records import CellRecord, PipeRecord, PlanRecord
from dataplane.tables.shadows import ShadowProgress
from tests.support.replaying import CELL, INGEST, NOW_US, PIPE, TOPICS
from tests.support.shadowing import shadow, spec_of

RUN, END = RunStep("run"), RunStep("end")
HALF = first_shadow_progress("shd_1", [OffsetRange((INGEST, 0), 3, 9)], 1)
FULL = first_shadow_progress("shd_1", [OffsetRange((INGEST, 0), 9, 9)], 1)
PIPE_RECORD = PipeRecord(PIPE, 1, "t", "orders", CELL, "active", [(1, 100)])
CONTEXT = ShadowContext(CellRecord(CELL, 1, 1, {}, TOPICS), PIPE_RECORD, PlanRecord(PIPE, 1, spec_of()), "", True, 2)
LAKE = spec_of(destinations={"lake": {"type": "lake"}})
FOLLOWS = {"until_us": 0}


@pytest.mark.parametrize(
    ("fields", "changes", "progress", "step"),
    [
        pytest.param({}, {}, None, RunStep("resolve"), id="no progress yet"),
        pytest.param({}, {}, HALF, RUN, id="something is left"),
        pytest.param({}, {}, FULL, END, id="all is compared"),
        pytest.param(FOLLOWS, {}, FULL, RUN, id="live traffic has no end"),
        pytest.param(FOLLOWS | {"state": "ended"}, {}, FULL, END, id="following was stopped"),
        pytest.param({"state": "ended"}, {}, HALF, RunStep("end", ABORTED), id="stopped early"),
        pytest.param({"state": "ended"}, {}, None, RunStep("end", ABORTED), id="stopped before it began"),
        pytest.param({"state": "ended"}, {"plan": None}, FULL, END, id="stopped after its last event"),
        pytest.param(
            FOLLOWS | {"most_events": 5}, {}, msgspec.structs.replace(FULL, events=5), END, id="enough events"
        ),
        pytest.param(
            FOLLOWS | {"most_events": 5}, {}, msgspec.structs.replace(FULL, events=4), RUN, id="not enough events yet"
        ),
        pytest.param({}, {"slots": 0}, HALF, RunStep("wait", NO_SLOT), id="no slot"),
        pytest.param({}, {"plan": None}, HALF, RunStep("end", "revision 1 is not published"), id="no plan"),
        pytest.param({}, {"pipe": None}, HALF, RunStep("end", "revision 1 is not published"), id="no pipe"),
        pytest.param(
            {},
            {"pipe": msgspec.structs.replace(PIPE_RECORD, state="closed")},
            HALF,
            RunStep("end", "the pipe is closed"),
            id="closed",
        ),
        pytest.param(
            {},
            {"pipe": msgspec.structs.replace(PIPE_RECORD, cell="c2")},
            None,
            RunStep("end", "the pipe has been migrated to another cell"),
            id="migrated",
        ),
        pytest.param(
            {},
            {},
            first_shadow_progress("shd_1", [OffsetRange(("old", 0), 3, 9)], 1),
            RunStep("end", "the pipe has been migrated to another cell"),
            id="its topic was recreated",
        ),
        pytest.param({}, {"problem": "no"}, None, RunStep("end", "no"), id="does not compile"),
        pytest.param(
            {},
            {"has_salt": False},
            None,
            RunStep("end", "the secret of the hash steps cannot be decrypted"),
            id="no salt",
        ),
        pytest.param(
            {"spec": LAKE},
            {},
            None,
            RunStep("end", "the draft has no destination of type http, s3, postgres or topic"),
            id="nothing to compare",
        ),
    ],
)
def test_next_step(fields: dict[str, Any], changes: dict[str, Any], progress: Any, step: RunStep):
    now = msgspec.structs.replace(CONTEXT, **changes)
    assert next_shadow_step(shadow(**fields), progress, now) == step


def test_paused_pipe_is_compared_nevertheless():
    now = msgspec.structs.replace(CONTEXT, pipe=msgspec.structs.replace(PIPE_RECORD, state="paused"))
    assert next_shadow_step(shadow(), HALF, now) == RUN


JOB: dict[str, Any] = {"records": 100, "events": 100, "size_bytes": 100, "took_s": 2.0, "sent_s": 0.0}


@pytest.mark.parametrize(
    ("size", "job", "next_size"),
    [
        pytest.param(100, {"took_s": 0.1}, 200, id="short"),
        pytest.param(100, {}, 100, id="as long as it is to be"),
        pytest.param(100, {"took_s": 9.0}, 50, id="long"),
        pytest.param(MOST_RECORDS, {"records": 9, "events": 0, "took_s": 0.1}, MOST_RECORDS, id="as large as possible"),
        pytest.param(100, {"records": 50, "took_s": 0.1, "size_bytes": MOST_BYTES}, 50, id="large bodies"),
        pytest.param(1, {"records": 1, "took_s": 9.0, "size_bytes": 9 * MOST_BYTES}, 1, id="one large event"),
        pytest.param(80_000, {"records": 80_000, "events": 80_000, "took_s": 0.1}, MOST_EVENTS, id="many events"),
        pytest.param(80_000, {"records": 80_000, "events": 10, "took_s": 0.1}, MOST_RECORDS, id="those of other pipes"),
        pytest.param(9_000, {"took_s": 2.0, "sent_s": SENT_S + 1}, 4_500, id="many deliveries"),
        pytest.param(600, {"took_s": 0.1, "sent_s": SENT_S + 1}, FIRST_RECORDS, id="deliveries do not become fewer"),
    ],
)
def test_size_of_a_job_follows_its_time_its_events_and_its_bytes(size: int, job: dict[str, Any], next_size: int):
    assert size_after(size, **JOB | job) == next_size


def test_event_that_ends_its_process_is_found_in_a_few_jobs():
    size = FIRST_RECORDS
    for _ in range(5):
        size = size_after_failure(size)
    assert size == 1


def test_last_job_is_not_much_larger_than_what_is_left_of_the_number_of_events():
    def progress(events: int, read: int) -> ShadowProgress:
        return msgspec.structs.replace(HALF, events=events, read=read)

    assert next_size(shadow(), progress(10, 10), 5_000) == 5_000
    assert next_size(shadow(most_events=1_000), progress(0, 10), 5_000) == 5_000
    assert next_size(shadow(most_events=1_000), progress(10, 10), 5_000) == 990
    assert next_size(shadow(most_events=1_000), progress(999, 999), 5_000) == FEWEST_AT_END
    assert next_size(shadow(most_events=1_000), progress(999, 999_000), 5_000) == 1_000, "one of 1,000 is of this pipe"


def test_compared_until_is_the_time_of_the_partition_that_is_behind():
    record = shadow()
    ranges = [OffsetRange((INGEST, number), 0, 9) for number in range(2)]
    progress = first_shadow_progress("shd_1", ranges, 1)
    first, second = progress.ends
    assert compared_until(record, progress, {first: NOW_US}, {}) == 0
    assert compared_until(record, progress, {first: NOW_US, second: NOW_US - 5}, {}) == NOW_US - 5
    known = msgspec.structs.replace(progress, compared_until_us=NOW_US)
    assert compared_until(record, known, {first: NOW_US - 9, second: NOW_US - 9}, {}) == NOW_US, "never back"
    done = msgspec.structs.replace(progress, reached=progress.ends)
    assert compared_until(record, done, {}, {}) == record.until_us
    follows = shadow(until_us=0)
    assert compared_until(follows, done, {first: 5, second: 6}, {}) == 5
    assert compared_until(follows, done, {first: 5, second: 6}, {first: 9, second: 9}) == 9


def test_ends_of_a_run_that_follows_never_go_back():
    ends = with_ends(HALF, INGEST, {0: 12, 1: 4, 2: -1_001})
    assert ends == {f"{INGEST}/0": 12, f"{INGEST}/1": 4, f"{INGEST}/2": 0}
    assert with_ends(HALF, INGEST, {0: 5})[f"{INGEST}/0"] == 9
