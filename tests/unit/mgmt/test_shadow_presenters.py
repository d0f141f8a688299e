"""Words and figures of shadow runs."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dataplane.ledger.units import position_of
from mgmt.models import Shadow
from mgmt.shadows.presenters import cost_of, fields_of, rejected_of, results_of, samples_of, shadow_line

NOW = datetime(2026, 11, 27, 12, tzinfo=UTC)
RUNNING = {"state": "running", "started_at": NOW, "progress_at": NOW}


def a_row(**fields: Any) -> Shadow:
    return Shadow(**{"revision": 8, "based_on": 8, "until": NOW, "most_events": 100, "created_at": NOW} | fields)


def sample(kind: str, offset: int, reason: str = "", destination: str = "crm") -> dict[str, Any]:
    position = position_of(1, 0, offset)
    return {
        "kind": kind, "destination": destination, "position": position, "child": 0, "reason": reason, "fields": [],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "words", "progress"),
    [
        ({"state": "running"}, "starting", ""),
        ({"state": "running", "error": "a table is missing"}, "waiting", ""),
        (RUNNING | {"error": "events before 2026-11-20T12:00:00Z are no longer retained"}, "running", "0\u202f%"),
        (RUNNING | {"until": None, "error": "events before x are no longer retained; no slot"}, "waiting", ""),
        (RUNNING | {"events": 62}, "running", "62\u202f%"),
        (RUNNING | {"until": None, "most_events": 0}, "following live traffic", ""),
        (RUNNING | {"ends": {"t/0": 200}, "reached": {"t/0": 50}, "read": 150, "events": 1}, "running", "50\u202f%"),
        ({"state": "stopping"}, "stopping", ""),
        ({"state": "done"}, "done", ""),
    ],
)
def test_state_and_progress(fields: dict[str, Any], words: str, progress: str):
    line = shadow_line(a_row(**fields))
    assert (line.words, line.progress) == (words, progress)


@pytest.mark.parametrize(
    ("units", "words", "not_equal"),
    [
        ({}, "", 0),
        ({"crm": {"equal": 1}}, "The one message is equal", 0),
        ({"crm": {"equal": 1_500}, "erp": {"equal": 500}}, "All 2\u202f000 messages are equal", 0),
        ({"crm": {"equal": 9_120, "different": 870}, "erp": {"only_live": 4, "only_draft": 3, "not_sent": 3}},
         "9\u202f120 of 10\u202f000 messages are equal", 877),
        ({"crm": {"equal": 1, "not_sent": 1}}, "1 of 2 messages is equal", 0),
    ],
)  # fmt: skip
def test_summary_counts_all_destinations(units: dict[str, Any], words: str, not_equal: int):
    line = shadow_line(a_row(state="done", units=units))
    assert (line.summary, line.not_equal) == (words, not_equal)


@pytest.mark.parametrize(
    ("error", "note"),
    [
        ("", ""),
        ("no slot", "Waiting: no slot."),
        ("events before x are no longer retained", "Events before x are no longer retained."),
        (
            "events before x are no longer retained; no slot",
            "Waiting: events before x are no longer retained; no slot.",
        ),
    ],
)
def test_note_on_deleted_events_is_not_a_reason_to_wait(error: str, note: str):
    assert shadow_line(a_row(state="running", error=error)).note == note


@pytest.mark.parametrize(
    ("reason", "words"),
    [("no-source", "its source does not exist"), ("unknown-destination", "this destination does not exist")],
)
def test_message_without_source_or_destination_in_the_draft_is_not_rejected(reason: str, words: str):
    assert samples_of(a_row(samples=[sample("only_live", 1, reason)]))[0].reason == words


def test_results_have_shares_of_each_destination():
    row = a_row(units={"erp": {"equal": 3, "different": 1}, "crm": {}})
    crm, erp = results_of(row)
    assert (crm.name, crm.total, {share for *_, share in crm.cells}) == ("crm", 0, {0.0})
    assert [(name, count, share) for name, _, count, share in erp.cells][:2] == [
        ("equal", 3, 0.75),
        ("different", 1, 0.25),
    ]


def test_lag_is_that_of_the_newest_report_and_zero_if_nothing_waits():
    follows = RUNNING | {"until": None, "most_events": 0, "compared_until": NOW - timedelta(seconds=3)}
    behind = {"ends": {"t/0": 9}, "reached": {"t/0": 8}}
    assert shadow_line(a_row(**follows)).lag_us == 0
    assert shadow_line(a_row(**follows, **behind)).lag_us == 3_000_000
    assert shadow_line(a_row(**follows | behind | {"compared_until": None})).lag_us is None
    assert shadow_line(a_row(**RUNNING, **behind)).lag_us is None, "it does not follow live traffic"


def test_fields_are_ordered_by_count_and_further_ones_come_last():
    units = {"crm": {"equal": 70, "different": 30, "only_live": 9}}
    found = fields_of(a_row(units=units, fields={"crm": {"b": 4, "": 20, "a": 10}}))
    assert [(one.path, one.count, one.share) for one in found] == [("a", 10, 0.1), ("b", 4, 0.04), ("", 20, 0.2)]


def test_samples_are_grouped_by_result_newest_first_with_reasons_in_words():
    rows = [
        sample("only_draft", 5), sample("only_live", 1, "unrouted"), sample("different", 3), sample("different", 4),
        sample("only_live", 2, "step"), sample("only_live", 0, "not-chosen"),
    ]  # fmt: skip
    found = samples_of(a_row(samples=rows))
    assert [(one.result, one.position) for one in found] == [
        ("different", "1-0-4"),
        ("different", "1-0-3"),
        ("only_live", "1-0-2"),
        ("only_live", "1-0-1"),
        ("only_live", "1-0-0"),
        ("only_draft", "1-0-5"),
    ]
    assert found[3].reason == "no rule matches"
    assert found[4].reason == "the route sends it to other destinations"
    assert found[2].reason.startswith("rejected: ")
    assert found[2].reason != "rejected: step", "the cause is in words"


def test_causes_are_in_words_and_the_most_frequent_comes_first():
    found = rejected_of(a_row(rejected={"too-large": 1, "step": 7}))
    assert [(cause, count) for cause, _, count in found] == [("step", 7), ("too-large", 1)]
    assert all(words[0].isupper() and words != cause for cause, words, _ in found)


def test_cost_is_per_event_with_its_ratio():
    cost = cost_of(a_row(cost_events=4, live_cpu_us=200, draft_cpu_us=300))
    assert cost is not None
    assert (cost.live_us, cost.draft_us, cost.words) == (50.0, 75.0, "1.5 times the CPU time of the live revision")
    assert cost_of(a_row()) is None
    unmeasured = cost_of(a_row(cost_events=1, draft_cpu_us=3))
    assert unmeasured is not None
    assert unmeasured.words == "too little to compare"
