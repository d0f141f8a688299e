"""One data plane for the tests of queries: real Kafka, real Spark, each test with pipes of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rig.data_plane import DataPlane


@pytest.fixture(scope="package")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DataPlane]:
    """Kafka, two ingest replicas, the cell under its keeper, a receiver."""
    running = DataPlane(Path(tmp_path_factory.mktemp("streams")))
    try:
        running.wait_ready()
        running.start_cell()
        yield running
    finally:
        running.close()
