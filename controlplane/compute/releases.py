"""A release: the data plane's code as one zip, named by its content: an application runs what it started with."""

import hashlib
import io
import os
import zipfile
from pathlib import Path
from typing import Final

PACKAGE: Final = "dataplane"
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)  # the same content gives the same bytes


def pack_release(root: Path, releases: Path) -> Path:
    """The zip of `root`/dataplane in `releases`, made if it is not there; safe to call at once from many processes."""
    content = _zip(root)
    path = releases / f"{PACKAGE}-{hashlib.sha256(content).hexdigest()[:16]}.zip"
    if not path.exists():
        releases.mkdir(parents=True, exist_ok=True)
        scratch = path.with_name(f".{path.name}.{os.getpid()}")
        scratch.write_bytes(content)
        scratch.replace(path)
    return path


def _zip(root: Path) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted((root / PACKAGE).rglob("*.py")):
            archive.writestr(zipfile.ZipInfo(path.relative_to(root).as_posix(), _EPOCH), path.read_bytes())
    return buffer.getvalue()
