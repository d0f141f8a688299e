"""One data plane for all fault tests: each test has its own pipe, so ledger accounts do not mix."""

from collections.abc import Iterator

import pytest

from tests.support.data_plane import DataPlane, running_plane


@pytest.fixture(scope="package")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DataPlane]:
    """Kafka, two ingest replicas, the cell under its keeper, and a receiver."""
    with running_plane(tmp_path_factory.mktemp("plane")) as plane:
        yield plane


@pytest.fixture(autouse=True)
def _begins_with_a_whole_plane(request: pytest.FixtureRequest) -> None:
    """Wait until the plane is whole: tests run in any order, and some kill what the next one needs."""
    if "plane" in request.fixturenames and isinstance(plane := request.getfixturevalue("plane"), DataPlane):
        plane.wait_whole()
