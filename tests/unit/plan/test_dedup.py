"""Dedup: which events are equal, and which of them passes."""

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.plan.dedup import DedupDecision, DedupIdentity, SeenEvent, judge
from dataplane.spec import DedupSpec

WINDOW_US = 100
arrivals = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1_000)), max_size=40)


def identity(body: Any, *paths: str, pipe: str = "p") -> bytes | None:
    return DedupIdentity(DedupSpec(list(paths or ("id",)))).of(pipe, body)


def test_equal_values_in_the_same_pipe_identify_the_same_event():
    assert identity({"id": 7, "rest": 1}) == identity({"rest": 2, "id": 7})
    assert identity({"id": 7}) != identity({"id": 7}, pipe="other")
    assert identity({"id": 7}) != identity({"id": "7"})
    assert identity({"id": {"a": 1, "b": 2}}) == identity({"id": {"b": 2, "a": 1}})


def test_several_paths_distinguish_events_that_one_path_does_not():
    assert identity({"shop": 1, "id": 7}, "shop", "id") != identity({"shop": 2, "id": 7}, "shop", "id")
    assert identity({"shop": "a", "id": "bc"}, "shop", "id") != identity({"shop": "ab", "id": "c"}, "shop", "id")


@pytest.mark.parametrize("body", [{}, {"id": None}, {"other": 1}, [], 7, None, "id"])
def test_event_without_the_value_has_no_identity(body: Any):
    assert identity(body) is None


@pytest.mark.parametrize(
    ("known", "event", "expected"),
    [
        pytest.param(None, SeenEvent(1, 0), DedupDecision(True, remember=SeenEvent(1, 0)), id="the first"),
        pytest.param(
            SeenEvent(1, 0), SeenEvent(2, 100), DedupDecision(False, first=1), id="a repeat at the end of the window"
        ),
        pytest.param(
            SeenEvent(1, 0), SeenEvent(2, 101), DedupDecision(True, remember=SeenEvent(2, 101)), id="a first one again"
        ),
        pytest.param(SeenEvent(1, 0), SeenEvent(1, 0), DedupDecision(False), id="the same message told twice"),
        pytest.param(
            SeenEvent(5, 200), SeenEvent(2, 150), DedupDecision(False, first=5), id="an earlier one that was read later"
        ),
        pytest.param(SeenEvent(5, 200), SeenEvent(2, 99), DedupDecision(True), id="one from long before goes on"),
    ],
)
def test_event_is_a_repeat_only_within_the_window(known: SeenEvent | None, event: SeenEvent, expected: DedupDecision):
    assert judge(known, event, WINDOW_US) == expected


def recomputed(events: Iterable[tuple[int, SeenEvent]]) -> dict[int, int | None]:
    """Return by position the event that is repeated, or None; independent of `judge`, over a whole log."""
    latest: dict[int, SeenEvent] = {}
    verdicts: dict[int, int | None] = {}
    for identity, event in events:
        first = latest.get(identity)
        if first and abs(event.ingest_us - first.ingest_us) <= WINDOW_US:
            verdicts[event.position] = first.position
            continue
        verdicts[event.position] = None
        if first is None or event.ingest_us > first.ingest_us:
            latest[identity] = event
    return verdicts


@given(arrivals, st.data())
def test_decisions_in_repeated_batches_equal_one_pass_over_the_log(log: Any, data: st.DataObject):
    events = [(identity, SeenEvent(number + 1, at)) for number, (identity, at) in enumerate(log)]
    state: dict[int, SeenEvent] = {}
    verdicts: dict[int, int | None] = {}
    rest = events
    while rest:
        size = data.draw(st.integers(1, len(rest)))
        before = dict(state)
        for _ in range(data.draw(st.integers(1, 2))):  # killed before the end and repeated
            state = dict(before)
            for identity, event in rest[:size]:
                verdict = judge(state.get(identity), event, WINDOW_US)
                if verdict.remember:
                    state[identity] = verdict.remember
                verdicts[event.position] = verdict.first
        rest = rest[size:]
    assert verdicts == recomputed(events)


@given(arrivals)
def test_every_event_passes_or_names_one_that_passed_within_the_window(log: Any):
    state: dict[int, SeenEvent] = {}
    went_on: dict[int, SeenEvent] = {}
    for number, (identity, at) in enumerate(log):
        event = SeenEvent(number + 1, at)
        verdict = judge(state.get(identity), event, WINDOW_US)
        if verdict.remember:
            state[identity] = verdict.remember
        if verdict.passes:
            went_on[event.position] = event
        else:
            assert verdict.first is not None
            assert abs(went_on[verdict.first].ingest_us - at) <= WINDOW_US
