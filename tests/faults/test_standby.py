"""Standby application on real Spark: it takes over from a killed JVM or driver, and no event is lost."""

import itertools
import logging
import os
import signal
import time
from collections.abc import Iterator
from typing import Final

import pytest

from tests.faults.test_kills import SEND_LIMIT, check, ending_with, lanes_back
from tests.support.data_plane import DataPlane, running_plane, until
from tests.support.sizes import KILLS

log = logging.getLogger(__name__)
RATE: Final = 200.0
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
    victims = itertools.cycle([plane.driver_pid, plane.python_driver_pid])
    pauses = []
    with plane.sender(key, RATE) as sender:
        for victim in itertools.islice(victims, kills):
            until(plane.standby_is_ready, "the standby application is ready", 120)
            until(lambda: plane.receiver.got[path], "the pipe delivers")
            time.sleep(2)
            pid = victim()
            killed, since_ns = ending_with(plane, pid), time.time_ns()
            os.kill(pid, signal.SIGKILL)
            lanes_back(plane, since_ns // 1_000, killed)
            time.sleep(2)
            pauses.append(pause_s(plane, path, since_ns))
    check(plane, pipe, sender, kills)
    log.info("%s: no delivery for %s s", pipe, [round(pause, 2) for pause in pauses])
    return pauses


def test_standby_takes_over_from_a_killed_jvm_and_a_killed_driver_and_nothing_is_lost(standby_plane: DataPlane):
    pauses = pauses_s(standby_plane, "standby", 2)
    slow = max(1.0, os.getloadavg()[0] / (2 * (os.cpu_count() or 1)))
    assert max(pauses) < PAUSE_S * slow


@pytest.mark.long
@pytest.mark.alone
@pytest.mark.timeout(3_600)
def test_pauses_of_many_kills_with_a_standby_are_short(standby_plane: DataPlane):
    assert max(pauses_s(standby_plane, "standbys", max(KILLS, 4))) < PAUSE_S
