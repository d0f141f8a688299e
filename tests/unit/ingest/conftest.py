"""Replicas in memory. Files of killed ones are closed after each test, as the operating system would."""

from collections.abc import Iterator
from io import FileIO
from pathlib import Path

import pytest

from dataplane.ingest import journal
from dataplane.runtime.line_files import append_to
from tests.support.typed_ingest import Opened, opened_ingest


@pytest.fixture(autouse=True)
def _files_of_the_killed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    opened: list[FileIO] = []

    def remembered(path: Path) -> FileIO:
        opened.append(append_to(path))
        return opened[-1]

    monkeypatch.setattr(journal, "append_to", remembered)
    yield
    for file in opened:
        file.close()


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Opened]:
    """Return a function that makes replicas of a source with event types."""
    yield from opened_ingest(tmp_path, monkeypatch)
