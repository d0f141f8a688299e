"""Standby application on real Spark: it takes over from a killed JVM or driver, and no event is lost."""

import itertools
import logging
import random
import time
from collections.abc import Iterator
from typing import Final

import pytest

from tests.faults.test_kills import SEND_LIMIT, check, drivers, kill_at_random, slowdown
from tests.support.data_plane import DataPlane, running_plane, until
from tests.support.sizes import KILLS

log = logging.getLogger(__name__)
RATE: Final = 200.0
BETWEEN_S: Final = (1.5, 2.5)
PAUSE_S: Final = 6.0  # a new application takes 7 s on an idle machine, and back-off


@pytest.fixture(scope="module")
def standby_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DataPlane]:
    with running_plane(tmp_path_factory.mktemp("standby"), standby=True) as plane:
        yield plane


def pause_s(plane: DataPlane, path: str, since_ns: int) -> float:
    """Return the longest time between two deliveries since then."""
    times = [since_ns, *(received.at_ns for received in plane.receiver.got[path] if received.at_ns > since_ns)]
    return max(later - earlier for earlier, later in itertools.pairwise(times)) / 1e9


def pauses_s(plane: DataPlane, pipe: str, kills: int) -> list[float]:
    """Kill the JVM and the driver in turns under load, check that nothing is lost; return the pause after each kill."""
    path = f"/{pipe}"
    key = plane.add_pipe(pipe, {"crm": {"url": plane.receiver.url(path), "concurrency": SEND_LIMIT}})
    victim, chance, pauses = drivers(plane), random.Random(7), []
    with plane.sender(key, RATE) as sender:
        for _ in range(kills):
            until(plane.standby_is_ready, "the standby application is ready", 120)
            until(lambda: plane.receiver.got[path], "the pipe delivers")
            since_ns = time.time_ns()
            kill_at_random(plane, chance, victim, BETWEEN_S)
            time.sleep(2)
            pauses.append(pause_s(plane, path, since_ns))
    check(plane, pipe, sender, kills)
    log.info("%s: no delivery for %s s", pipe, [round(pause, 2) for pause in pauses])
    return pauses


def test_standby_takes_over_from_a_killed_jvm_and_a_killed_driver_and_nothing_is_lost(standby_plane: DataPlane):
    pauses = pauses_s(standby_plane, "standby", 2)
    assert max(pauses) < PAUSE_S * slowdown()


@pytest.mark.long
@pytest.mark.alone
@pytest.mark.timeout(3_600)
def test_pauses_of_many_kills_with_a_standby_are_short(standby_plane: DataPlane):
    assert max(pauses_s(standby_plane, "standbys", max(KILLS, 4))) < PAUSE_S
