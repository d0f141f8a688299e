"""One data plane for the query tests: real Kafka, real Spark, and own pipes for each test."""

from collections.abc import Iterator

import pytest

from tests.support.data_plane import DataPlane, running_plane


@pytest.fixture(scope="package")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DataPlane]:
    """Kafka, two ingest replicas, the cell under its keeper, and a receiver."""
    with running_plane(tmp_path_factory.mktemp("streams")) as plane:
        yield plane
