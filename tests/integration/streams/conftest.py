"""One data plane for the tests of queries: real Kafka, real Spark, each test with pipes of its own."""

from collections.abc import Iterator

import pytest

from tests.rig.data_plane import DataPlane, running_plane


@pytest.fixture(scope="package")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DataPlane]:
    """Kafka, two ingest replicas, the cell under its keeper, a receiver."""
    with running_plane(tmp_path_factory.mktemp("streams")) as plane:
        yield plane
