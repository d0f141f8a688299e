"""Loss detection: messages vanish from topics, as many are copied instead, and the ledger names each one."""

import math
import random
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.support.lane_plane import LanePlane
from tests.support.meter import LEAKS, Leak, LeakingPipe
from tests.support.sizes import LOSS_RUNS

MOST: Final = 10_000  # removed in one run
BY_NAME: Final = {leak.name: leak for leak in LEAKS}


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LanePlane]:
    """A plane of its own: retries that other tests schedule for hours would hold the retrier's marks back."""
    running = LanePlane(Path(tmp_path_factory.mktemp("meter")))
    running.wait_ready()
    yield running
    running.close()


def measure(pipes: Iterable[LeakingPipe]) -> None:
    """Measure several pipes at once: they mostly wait."""
    for pipe in pipes:
        pipe.send_the_last()
    for pipe in pipes:
        pipe.copy_as_many()
    for pipe in pipes:
        pipe.check()


def leaking(plane: LanePlane, leak: Leak, seed: int, *, stolen: int, honest: int) -> LeakingPipe:
    pipe = LeakingPipe(plane, leak, random.Random(seed), f"{leak.name}-{seed}")
    pipe.send(stolen=stolen, honest=honest)
    return pipe


def test_messages_that_vanish_on_any_path_are_named_with_their_node(plane: LanePlane):
    chance = random.Random(20_261_121)
    measure([leaking(plane, leak, 0, stolen=chance.randint(1, 40), honest=40) for leak in LEAKS])


def test_one_lost_message_of_many_is_named(plane: LanePlane):
    measure([leaking(plane, BY_NAME["egress"], 1, stolen=1, honest=500)])


@pytest.mark.long
@pytest.mark.timeout(3_600)
def test_up_to_10000_messages_removed_from_egress_in_each_of_many_runs_are_named(plane: LanePlane):
    chance = random.Random(7)
    counts = [1, MOST, *(round(math.exp(chance.uniform(0, math.log(MOST)))) for _ in range(LOSS_RUNS - 2))]
    for number, count in enumerate(counts):
        measure([leaking(plane, BY_NAME["egress"], 100 + number, stolen=count, honest=200)])


@pytest.mark.long
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("leak", LEAKS, ids=BY_NAME)
def test_thousand_messages_that_vanish_on_a_path_are_named(plane: LanePlane, leak: Leak):
    measure([leaking(plane, leak, 1_000 + run, stolen=count, honest=100) for run, count in enumerate((1, 30, 1_000))])
