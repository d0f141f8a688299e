"""Conditions under which a dedicated cell of one tenant sleeps and wakes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.autoscaler.sleeping import WAKES_EVERY_S, SleepCandidate, SleepChange, next_sleep_change

AWAKE = SleepCandidate(is_asleep=False, sleeps_after_s=900, idle_s=900)
ASLEEP = SleepCandidate(is_asleep=True, sleeps_after_s=900, asleep_s=5, idle_s=900)
rests = st.builds(
    SleepCandidate,
    is_asleep=st.booleans(),
    sleeps_after_s=st.none() | st.integers(60, 3_600),
    asleep_s=st.floats(0, 2 * WAKES_EVERY_S),
    idle_s=st.integers(0, 7_200).map(float),  # Hypothesis prefers floats near 0, with which no cell falls asleep
    backlog=st.integers(0, 3),
    open_work=st.sampled_from(["", "5 messages are held"]),
)


def but(rest: SleepCandidate, **changes: object) -> SleepCandidate:
    return SleepCandidate(**({name: getattr(rest, name) for name in rest.__struct_fields__} | changes))


def test_idle_cell_sleeps_after_its_time():
    assert next_sleep_change(AWAKE) == SleepChange(
        asleep=True, why="no message arrived for 900 s: it sleeps until the next one"
    )


@pytest.mark.parametrize("busy", [{"idle_s": 899}, {"backlog": 1}, {"open_work": "x"}, {"sleeps_after_s": None}])
def test_cell_stays_awake_while_it_has_work_or_has_no_sleep_time(busy: dict[str, object]):
    assert next_sleep_change(but(AWAKE, **busy)) is None


@pytest.mark.parametrize(
    ("come", "why"),
    [
        ({"backlog": 1}, "1 message has arrived"),
        ({"backlog": 2}, "2 messages have arrived"),
        ({"open_work": "release x is being rolled out"}, "release x is being rolled out"),
        ({"sleeps_after_s": None}, "its policy no longer allows sleep"),
        ({"asleep_s": WAKES_EVERY_S}, "it wakes once a day, to check that it can start"),
    ],
)
def test_any_reason_to_run_wakes_a_sleeping_cell(come: dict[str, object], why: str):
    assert next_sleep_change(ASLEEP) == SleepChange(asleep=True, why="no messages arrive: it sleeps until the next one")
    assert next_sleep_change(but(ASLEEP, **come)) == SleepChange(asleep=False, why=why)


@given(rest=rests)
def test_cell_with_waiting_work_never_sleeps(rest: SleepCandidate):
    turn = next_sleep_change(rest)
    is_asleep = rest.is_asleep if turn is None else turn.asleep
    assert not (is_asleep and (rest.backlog or rest.open_work or rest.sleeps_after_s is None))
    assert turn is not None or not rest.is_asleep
