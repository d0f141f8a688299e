"""A killed process leaves its files to the operating system; here they are closed when the test is over."""

from collections.abc import Iterator
from io import FileIO
from pathlib import Path

import pytest

from dataplane.ingest import journal
from dataplane.runtime.lines import append_to


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
