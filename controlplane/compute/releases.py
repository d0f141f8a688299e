"""Releases: immutable builds of the data plane. Each is a zip named by the hash of its bytes, and runs unchanged.

Packing is safe to run in many processes and threads at once. Each zip is checked against its name when it is read: a
build that was changed, or half written, counts as absent.
"""

import hashlib
import io
import os
import re
import threading
import zipfile
from pathlib import Path
from typing import Final

PACKAGE: Final = "dataplane"
APPLICATION: Final = f"{PACKAGE}/jobs/cell.py"
WORKER_DAEMON: Final = f"{PACKAGE}.jobs.worker_daemon"
ID: Final = re.compile(r"[0-9a-f]{16}")
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)  # the same content gives the same bytes


class ReleaseError(OSError):
    """The release is absent, or its content does not match its name; it must not be run."""


class ReleaseStore:
    """Builds in one folder, to which the control plane writes and from which the keeper starts applications."""

    def __init__(self, var: Path) -> None:
        self._folder = var / "releases"

    @staticmethod
    def identify(root: Path) -> str:
        """Return the id of the release that `pack` builds, and write nothing."""
        return _id_of(_zip(root))

    def pack(self, root: Path) -> str:
        """Build a release from `root`/dataplane, unless it exists; return its id."""
        content = _zip(root)
        release = _id_of(content)
        path = self.path_of(release)
        if not path.exists() or path.read_bytes() != content:
            _write(path, content)
        return release

    def archive(self, release: str) -> Path:
        """Return the zip to import from, after checking its hash. Raises ReleaseError."""
        path = self.path_of(release)
        try:
            content = path.read_bytes()
        except OSError as exc:
            raise ReleaseError(f"release {release}: {path} cannot be read: {exc.strerror}") from exc
        if _id_of(content) != release:
            raise ReleaseError(f"release {release}: {path} was changed after the build")
        return path

    def modified_ns(self, release: str) -> int:
        """Return when the release's file was last modified, in nanoseconds. Raises ReleaseError."""
        try:
            return self.path_of(release).stat().st_mtime_ns
        except OSError as exc:
            raise ReleaseError(f"release {release}: {exc}") from exc

    def application(self, release: str) -> Path:
        """Extract the program of a cell's application, as spark-submit starts only a file. Raises ReleaseError."""
        with zipfile.ZipFile(self.archive(release)) as archive:
            try:
                content = archive.read(APPLICATION)
            except KeyError as exc:
                raise ReleaseError(f"release {release}: it has no {APPLICATION}") from exc
        path = self._folder / release / Path(APPLICATION).name
        _write(path, content)
        return path

    def has_worker_daemon(self, release: str) -> bool:
        """Return True if the release has a daemon of Python workers of its own. Raises ReleaseError."""
        with zipfile.ZipFile(self.archive(release)) as archive:
            return f"{WORKER_DAEMON.replace('.', '/')}.py" in archive.namelist()

    def path_of(self, release: str) -> Path:
        """Return where the release's file is, or would be. Raises ReleaseError for a malformed id."""
        if not ID.fullmatch(release):
            raise ReleaseError(f"release: needs 16 hexadecimal digits, got {release!r}")
        return self._folder / f"{PACKAGE}-{release}.zip"


def _id_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    scratch.write_bytes(content)
    scratch.replace(path)


def _zip(root: Path) -> bytes:
    """Return a zip without compression: compressed bytes depend on the library's version, and would change the name."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for path in sorted((root / PACKAGE).rglob("*.py")):
            archive.writestr(zipfile.ZipInfo(path.relative_to(root).as_posix(), _EPOCH), path.read_bytes())
    return buffer.getvalue()
