"""Line files that survive a killed process: a torn last line is removed when the file is opened."""

from io import FileIO
from pathlib import Path


def read_lines(path: Path) -> list[bytes]:
    """Return the complete lines of a file, [] if it does not exist."""
    if not path.exists():
        return []
    return path.read_bytes().rpartition(b"\n")[0].splitlines()


def append_to(path: Path) -> FileIO:
    """Open a file for unbuffered appends and cut off a torn last line, so that the next line does not continue it."""
    file = path.open("ab", buffering=0)
    content = path.read_bytes()
    whole = content.rfind(b"\n") + 1
    if whole != len(content):
        file.truncate(whole)
    return file


def write_all(file: FileIO, data: bytes) -> None:
    """Write all of `data`: a raw file may write only a part. Raises OSError if the disk does not take it."""
    rest = memoryview(data)
    while rest:
        rest = rest[file.write(rest) :]
