"""One data plane for all fault tests: each test has a pipe of its own, so books do not mix."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rig.data_plane import DataPlane


@pytest.fixture(scope="session")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DataPlane]:
    """Kafka, two ingest replicas, the cell under its keeper, a receiver."""
    running = DataPlane(Path(tmp_path_factory.mktemp("plane")))
    try:
        running.wait_ready()
        running.start_cell()
        yield running
    finally:
        running.close()
