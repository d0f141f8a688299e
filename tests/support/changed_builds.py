"""Builds of the data plane that differ from the installed one, to roll them out."""

import shutil
from collections.abc import Callable
from pathlib import Path

from controlplane.compute.installed import installed_root
from controlplane.compute.releases import PACKAGE


def changed(scratch: Path, file: str, change: Callable[[str], str]) -> Path:
    """Copy the data plane to `scratch`, with the text of one file changed; return the folder to pack."""
    shutil.copytree(installed_root() / PACKAGE, scratch / PACKAGE, ignore=shutil.ignore_patterns("__pycache__"))
    path = scratch / PACKAGE / file
    path.write_text(change(path.read_text()))
    return scratch


def replacing(old: str, new: str) -> Callable[[str], str]:
    """Return a function that replaces `old`, which must occur exactly once."""

    def change(text: str) -> str:
        assert text.count(old) == 1
        return text.replace(old, new)

    return change
