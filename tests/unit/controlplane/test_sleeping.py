"""When a cell that is kept for one tenant sleeps, and what wakes it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.autoscaler.sleeping import WAKES_EVERY_S, Rest, Turn, next_turn

AWAKE = Rest(is_asleep=False, sleeps_after_s=900, idle_s=900)
ASLEEP = Rest(is_asleep=True, sleeps_after_s=900, asleep_s=5, idle_s=900)
rests = st.builds(
    Rest,
    is_asleep=st.booleans(),
    sleeps_after_s=st.none() | st.integers(60, 3_600),
    asleep_s=st.floats(0, 2 * WAKES_EVERY_S),
    idle_s=st.floats(0, 7_200),
    backlog=st.integers(0, 3),
    errand=st.sampled_from(["", "5 messages are held"]),
)


def but(rest: Rest, **changes: object) -> Rest:
    return Rest(**({name: getattr(rest, name) for name in rest.__struct_fields__} | changes))


def test_it_sleeps_after_its_time_with_nothing_to_do():
    assert next_turn(AWAKE) == Turn(asleep=True, why="nothing came for 900 s: it sleeps until something does")


@pytest.mark.parametrize("busy", [{"idle_s": 899}, {"backlog": 1}, {"errand": "x"}, {"sleeps_after_s": None}])
def test_it_stays_awake_as_long_as_anything_is_to_be_done_or_nobody_wants_it_to_sleep(busy: dict[str, object]):
    assert next_turn(but(AWAKE, **busy)) is None


@pytest.mark.parametrize(
    ("come", "why"),
    [
        ({"backlog": 1}, "1 message has come"),
        ({"backlog": 2}, "2 messages have come"),
        ({"errand": "release x is being rolled out"}, "release x is being rolled out"),
        ({"sleeps_after_s": None}, "it is not to sleep any more"),
        ({"asleep_s": WAKES_EVERY_S}, "it wakes once a day, to be seen to start"),
    ],
)
def test_whatever_is_to_be_done_wakes_it(come: dict[str, object], why: str):
    assert next_turn(ASLEEP) == Turn(asleep=True, why="nothing comes: it sleeps, and the next message wakes it")
    assert next_turn(but(ASLEEP, **come)) == Turn(asleep=False, why=why)


@given(rest=rests)
def test_nothing_that_waits_ever_sleeps(rest: Rest):
    turn = next_turn(rest)
    is_asleep = rest.is_asleep if turn is None else turn.asleep
    assert not (is_asleep and (rest.backlog or rest.errand or rest.sleeps_after_s is None))
    assert turn is not None or not rest.is_asleep
