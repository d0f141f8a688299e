"""The rules of the kill schedule: what may start again after a kill, and which deliveries it may repeat."""

from itertools import islice

import pytest

from localbox.catalogue import programs
from localbox.demo.logs import ReceivedDelivery
from localbox.settings import settings_from
from tests.support.kill_schedule import (
    APPLICATION,
    EVERY_KIND,
    EVERYTHING,
    LANES,
    PROGRAMS,
    STARTS_AGAIN,
    Kill,
    Repeat,
    repeats_of,
    rounds,
    too_many_starts,
)

SLACK_US = 10


def kill(name: str, at_us: int = 0) -> Kill:
    return Kill(name, 1, at_us)


def received(position: int, at_us: int) -> ReceivedDelivery:
    return ReceivedDelivery(at_us, f"m{position}", position, "")


@pytest.mark.parametrize(
    ("killed", "starts", "wrong"),
    [
        pytest.param(["kafka"], {"kafka": 1}, {}, id="the killed process"),
        pytest.param(["kafka"], {"kafka": 1, "worker": 1}, {"worker": (1, 0)}, id="another process"),
        pytest.param(["web"], {"web": 2}, {"web": (2, 1)}, id="twice for one kill"),
        pytest.param(["web", "web"], {"web": 2}, {}, id="twice for two kills"),
        pytest.param(["driver"], {APPLICATION: 1, "process-0": 1}, {}, id="children of the killed process"),
        pytest.param(["lane process-0"], {"process-0": 1, APPLICATION: 1}, {APPLICATION: (1, 0)}, id="a parent"),
        pytest.param(["lane process-0"], {"transmit-0": 1}, {"transmit-0": (1, 0)}, id="another lane"),
        pytest.param([], {"redis": 0}, {}, id="nothing"),
    ],
)
def test_only_killed_processes_and_their_children_may_start_again(
    killed: list[str], starts: dict[str, int], wrong: dict[str, tuple[int, int]]
):
    assert too_many_starts([kill(name) for name in killed], starts) == wrong


def test_schedule_knows_every_program_of_a_box():
    assert {program.name for program in programs(settings_from({}, dotenv=None)) if not program.one_shot} == {*PROGRAMS}


def test_killing_a_program_allows_only_that_program_to_start_again():
    alone = {name for name, again in STARTS_AGAIN.items() if len(again) == 1}
    assert set(STARTS_AGAIN) - alone == {"driver", "jvm"}
    assert all(again <= {APPLICATION, *LANES} for name, again in STARTS_AGAIN.items() if name not in alone)


def test_each_round_kills_every_target_once_in_an_order_given_by_the_seed():
    first, second = islice(rounds(EVERY_KIND, seed=7), 2)
    assert sorted(first) == sorted(second) == sorted(EVERY_KIND)
    assert first != second
    assert next(rounds(EVERY_KIND, seed=7)) == first
    assert set(EVERY_KIND) <= set(EVERYTHING)


def test_repeat_belongs_to_the_first_kill_of_a_sending_process_after_the_first_delivery():
    kills = [kill("jvm", 100), kill("kafka", 200), kill("lane transmit-0", 300)]
    log = [received(1, 50), received(2, 250), received(1, 150), received(2, 310), received(3, 400)]
    assert repeats_of(log, kills, SLACK_US) == [Repeat(kills[0], 50), Repeat(kills[2], 50)]


def test_delivery_just_after_a_kill_may_still_be_repeated_because_of_it():
    kills = [kill("driver", 100)]
    assert repeats_of([received(1, 105), received(1, 150)], kills, SLACK_US) == [Repeat(kills[0], -5)]


@pytest.mark.parametrize(
    "kills",
    [
        pytest.param([kill("kafka", 55)], id="a kill of another process"),
        pytest.param([kill("driver", 100)], id="a kill after the repeat"),
        pytest.param([kill("driver", 30)], id="a kill before both"),
    ],
)
def test_repeat_that_no_kill_explains_is_reported(kills: list[Kill]):
    assert repeats_of([received(1, 50), received(1, 60)], kills, SLACK_US) == [Repeat(None, 0)]
