"""The verdict on a cell: its findings, how long they must last, and the findings that a change excuses."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.observer.verdict import (
    BEHIND_US,
    PATIENCE,
    SILENT,
    CellJudgement,
    CellObservation,
    ObservedHeartbeat,
    findings,
    judge,
)

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
LANES = {"process": 1, "transmit": 2}
WRITERS = ("driver", "process-0", "transmit-0", "transmit-1")


def s(seconds: float) -> timedelta:
    return timedelta(seconds=seconds)


def beats(now: datetime, *, without: Iterable[str] = ()) -> list[ObservedHeartbeat]:
    return [ObservedHeartbeat(writer, "running", now) for writer in WRITERS if writer not in without]


def look(now: datetime = NOW, **changes: Any) -> CellObservation:
    fields: dict[str, Any] = {
        "cell": "c1",
        "lanes": LANES,
        "beats": beats(now),
        "any_heartbeat": True,
        "lost": 0,
        "behind_us": 0,
        "changing": "",
        "now": now,
    }
    return CellObservation(**fields | changes)


def broken(now: datetime = NOW, **changes: Any) -> CellObservation:
    return look(now, beats=beats(now, without=["process-0"]), **changes)


STABLE = CellJudgement("stable", [], [], NOW - s(3600))
UNSTABLE = CellJudgement("unstable", ["process-0 has sent no heartbeat"], [], NOW - s(60))


def watched(before: CellJudgement | None, looks: Iterable[CellObservation]) -> list[str]:
    states: list[str] = []
    for one in looks:
        before = judge(before, one)
        states.append(before.state)
    return states


def test_cell_with_all_heartbeats_is_stable_at_the_first_observation():
    assert judge(None, look()) == CellJudgement("stable", [], [], NOW)


def instead(writer: str, **said: Any) -> CellObservation:
    """Return an observation with all heartbeats, and with this one of the writer."""
    beat: dict[str, Any] = {"state": "running", "at": NOW} | said
    return look(beats=[*beats(NOW, without=[writer]), ObservedHeartbeat(writer, **beat)])


@pytest.mark.parametrize(
    ("seen", "words"),
    [
        (broken(), "process-0 has sent no heartbeat"),
        (instead("transmit-1", at=NOW - s(11)), "transmit-1 has sent no heartbeat since 11:59:49 UTC"),
        (instead("transmit-1", state="failed"), "transmit-1 has failed"),
        (instead("driver", failures={"process-0": 2}), "process-0 fails repeatedly"),
        (instead("process-0", detail="its topic is gone"), "process-0: its topic is gone"),
        (look(lost=7), "7 messages were lost in minutes sealed within the last 10 minutes"),
        (look(behind_us=BEHIND_US + 1), "process is more than 30 s behind ingest"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_problem_is_reported_as_a_finding(seen: CellObservation, words: str):
    assert [finding.words for finding in findings(seen)] == [words]


@pytest.mark.parametrize(
    "seen",
    [
        pytest.param(
            look(lanes={"process": 0}, beats=[ObservedHeartbeat("driver", "drained", NOW - s(600))]),
            id="of an idle cell",
        ),
        pytest.param(instead("driver", failures={"process-0": 1}), id="after one failure"),
        pytest.param(instead("driver", failures={"process-7": 9}), id="of a lane that is not wanted"),
        pytest.param(instead("process-1", at=NOW - s(600), detail="old"), id="of a lane that was taken away"),
    ],
)
def test_harmless_observation_has_no_findings(seen: CellObservation):
    assert list(findings(seen)) == []


def test_silence_of_all_processes_makes_every_cell_unknown_at_once():
    after = judge(STABLE, look(any_heartbeat=False))
    assert (after.state, after.since) == ("unknown", NOW)
    assert "no process has sent a heartbeat" in after.reasons[0]
    assert judge(after, look(NOW + s(2), any_heartbeat=False)).since == NOW


def test_cell_with_forgotten_heartbeats_counts_as_silent_as_before():
    assert judge(UNSTABLE, look(beats=[])).state == "unstable"


def test_starting_cell_has_a_minute_and_is_stable_as_soon_as_it_is_up():
    assert watched(None, [broken(NOW + s(n)) for n in (0, 30, 59)]) == ["unknown"] * 3
    assert watched(None, [broken(NOW), look(NOW + s(2))]) == ["unknown", "stable"]
    assert watched(None, [broken(NOW), broken(NOW + s(60))]) == ["unknown", "unstable"]


def test_brief_problem_does_not_change_the_verdict():
    assert watched(STABLE, [broken(NOW), broken(NOW + s(9)), look(NOW + s(11)), broken(NOW + s(12))]) == ["stable"] * 4


def test_lasting_problem_changes_the_verdict_and_recovery_must_last_longer():
    at = [broken(NOW), broken(NOW + s(10)), look(NOW + s(12)), look(NOW + s(41)), look(NOW + s(42))]
    assert watched(STABLE, at) == ["stable", "unstable", "unstable", "unstable", "stable"]


def test_unconfirmed_recovery_is_reported_as_such():
    after = judge(UNSTABLE, look())
    assert after.reasons == ["healthy since 12:00:00 UTC, reported as stable after 30 s"]
    assert after.turning == NOW


@pytest.mark.parametrize("changing", ["deploy", "scale"])
def test_findings_caused_by_a_change_are_silenced_and_listed(changing: str):
    after = judge(STABLE, broken(changing=changing))
    assert (after.state, after.turning) == ("stable", None)
    assert after.silenced == [f"process-0 has sent no heartbeat (during {changing})"]


@pytest.mark.parametrize("changing", ["deploy", "scale", "provision"])
def test_loss_and_failing_lanes_are_never_excused(changing: str):
    assert judge(STABLE, look(lost=1, changing=changing)).turning == NOW


@given(st.lists(st.tuples(st.integers(1, 20), st.sampled_from(["well", "broken", "silent"])), max_size=40))
def test_verdict_never_changes_before_its_patience_is_over(steps: list[tuple[int, str]]):
    now, before = NOW, STABLE
    seen_since: dict[str, datetime] = {}
    for seconds, kind in steps:
        now += s(seconds)
        seen = {"well": look(now), "broken": broken(now), "silent": look(now, any_heartbeat=False)}[kind]
        seen_since = {kind: seen_since.get(kind, now)}
        after = judge(before, seen)
        if after.state != before.state and kind != "silent":
            assert now - seen_since[kind] >= PATIENCE[before.state, after.state]
        assert (after.state == "stable") == (not after.reasons)
        assert after.since <= now
        before = after


def test_late_heartbeat_is_not_silence():
    late = look(beats=[ObservedHeartbeat(writer, "running", NOW - SILENT) for writer in WRITERS])
    assert list(findings(late)) == []
