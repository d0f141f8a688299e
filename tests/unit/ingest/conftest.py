"""Close the files of killed ingest replicas after each test, as the operating system would."""

from collections.abc import Iterator
from io import FileIO
from pathlib import Path

import pytest

from dataplane.ingest import journal
from dataplane.runtime.line_files import append_to


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
