"""Builds of the data plane that differ from the installed one, to roll them out."""

import shutil
from pathlib import Path

from controlplane.compute.installed import installed_root
from controlplane.compute.releases import PACKAGE


def changed(scratch: Path, file: str, old: bytes, new: bytes) -> Path:
    """Copy the data plane to `scratch`, with a change in one file; return the folder to pack."""
    root = installed_root() / PACKAGE
    shutil.copytree(root, scratch / PACKAGE, ignore=shutil.ignore_patterns("__pycache__"))
    path = scratch / PACKAGE / file
    content = path.read_bytes()
    assert content.count(old) == 1
    path.write_bytes(content.replace(old, new))
    return scratch
