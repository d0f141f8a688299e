"""A folder on a disk that is full until room is made: a small file system of its own, filled.

Mounting one requires root. Otherwise the folder is below a regular file, where every operation fails as well.
"""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

SIZE_KB: Final = 16 * 1024  # look-up tables, snapshots and verdicts need little of it, once there is room


class FullDisk:
    """Full disk; nothing can be written to `folder` before `make_room`."""

    def __init__(self, at: Path, *, is_mounted: bool) -> None:
        self._at = at
        self._filler = at / "filler" if is_mounted else at
        self.folder = at / "var"
        if is_mounted:
            self.folder.mkdir()
            _fill(self._filler)
        else:
            at.write_bytes(b"")

    def make_room(self) -> None:
        """Free the space: the disk accepts writes from now on."""
        self._filler.unlink()


@contextmanager
def full_disk(tmp_path: Path) -> Iterator[FullDisk]:
    """Mount a full disk; unmount it afterwards."""
    at = tmp_path / "disk"
    at.mkdir()
    is_mounted = os.geteuid() == 0 and _mount(at)
    if not is_mounted:
        at.rmdir()
    try:
        yield FullDisk(at, is_mounted=is_mounted)
    finally:
        if is_mounted:
            subprocess.run(["umount", "--lazy", str(at)], check=True)


def _mount(at: Path) -> bool:
    command = ["mount", "-t", "tmpfs", "-o", f"size={SIZE_KB}k", "tmpfs", str(at)]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def _fill(path: Path) -> None:
    """Write until the disk is full: large blocks first, then the last bytes."""
    with path.open("wb", buffering=0) as file:
        for size in (1024 * 1024, 4_096, 1):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError:
                continue
