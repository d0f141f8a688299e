"""Releases: immutable builds of the data plane. One is a zip named by the hash of its bytes, and runs as it was made.

Packing is safe to call at once from many processes, and whatever is read is checked against its name: a build that was
changed, or half written, is not there.
"""

import hashlib
import io
import os
import re
import zipfile
from pathlib import Path
from typing import Final

PACKAGE: Final = "dataplane"
APPLICATION: Final = f"{PACKAGE}/jobs/cell.py"
ID: Final = re.compile(r"[0-9a-f]{16}")
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)  # the same content gives the same bytes


class ReleaseError(OSError):
    """There is no such release here, or it is not what its name says: nothing of it may be run."""


class Releases:
    """The builds in one folder, which the control plane fills and the keeper starts from."""

    def __init__(self, var: Path) -> None:
        self._folder = var / "releases"

    def pack(self, root: Path) -> str:
        """Build what lies in `root`/dataplane, unless that has been done; returns the release's id."""
        content = _zip(root)
        release = _id_of(content)
        path = self._path(release)
        if not path.exists() or path.read_bytes() != content:
            _write(path, content)
        return release

    def archive(self, release: str) -> Path:
        """The zip to import from. Raises ReleaseError."""
        path = self._path(release)
        try:
            content = path.read_bytes()
        except FileNotFoundError as exc:
            raise ReleaseError(f"release {release}: {path} is not there") from exc
        if _id_of(content) != release:
            raise ReleaseError(f"release {release}: {path} was changed since it was built")
        return path

    def application(self, release: str) -> Path:
        """The program of a cell's application, out of the zip: spark-submit starts only a file. Raises ReleaseError."""
        with zipfile.ZipFile(self.archive(release)) as archive:
            try:
                content = archive.read(APPLICATION)
            except KeyError as exc:
                raise ReleaseError(f"release {release}: it has no {APPLICATION}") from exc
        path = self._folder / release / Path(APPLICATION).name
        _write(path, content)
        return path

    def _path(self, release: str) -> Path:
        if not ID.fullmatch(release):
            raise ReleaseError(f"release: needs 16 hexadecimal digits, got {release!r}")
        return self._folder / f"{PACKAGE}-{release}.zip"


def _id_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    scratch.write_bytes(content)
    scratch.replace(path)


def _zip(root: Path) -> bytes:
    """Stored, not compressed: what a library compresses to is its own choice, and would be part of the name."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for path in sorted((root / PACKAGE).rglob("*.py")):
            archive.writestr(zipfile.ZipInfo(path.relative_to(root).as_posix(), _EPOCH), path.read_bytes())
    return buffer.getvalue()
