"""Standby application on real Spark: it takes over from a killed JVM or driver, and no event is lost."""

from collections.abc import Iterator
from typing import Final

import pytest

from tests.faults.test_kills import drivers, slowdown
from tests.faults.test_pauses import pauses_s
from tests.support.data_plane import DataPlane, running_plane
from tests.support.patience import until
from tests.support.sizes import KILLS

BETWEEN_S: Final = (1.5, 2.5)
PAUSE_S: Final = 6.0  # a new application takes 7 s on an idle machine, and back-off


@pytest.fixture(scope="module")
def standby_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DataPlane]:
    with running_plane(tmp_path_factory.mktemp("standby"), standby=True) as plane:
        yield plane


def standby_pauses_s(plane: DataPlane, pipe: str, kills: int) -> list[float]:
    """Kill the JVM and the driver in turns, each once a standby application is ready; return the pauses."""

    def wait_ready() -> None:
        until(plane.standby_is_ready, "the standby application is ready", 120)

    return pauses_s(plane, pipe, drivers(plane), kills=kills, between_s=BETWEEN_S, wait_ready=wait_ready)


def test_standby_takes_over_from_a_killed_jvm_and_a_killed_driver_and_nothing_is_lost(standby_plane: DataPlane):
    pauses = standby_pauses_s(standby_plane, "standby", 2)
    assert max(pauses) < PAUSE_S * slowdown()


@pytest.mark.long
@pytest.mark.alone
@pytest.mark.timeout(3_600)
def test_pauses_of_many_kills_with_a_standby_are_short(standby_plane: DataPlane):
    assert max(standby_pauses_s(standby_plane, "standbys", max(KILLS, 4))) < PAUSE_S
