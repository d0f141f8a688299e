"""Files of lines that outlive a killed process: a last line that was cut off is taken away when the file is opened."""

from io import FileIO
from pathlib import Path


def read_lines(path: Path) -> list[bytes]:
    """The whole lines of a file, none if it is not there."""
    if not path.exists():
        return []
    return path.read_bytes().rpartition(b"\n")[0].splitlines()


def append_to(path: Path) -> FileIO:
    """Open for unbuffered appends, after the last whole line: what comes next must not run on from a torn one."""
    file = path.open("ab", buffering=0)
    content = path.read_bytes()
    whole = content.rfind(b"\n") + 1
    if whole != len(content):
        file.truncate(whole)
    return file


def write_all(file: FileIO, data: bytes) -> None:
    """Write everything. Raises OSError if it does not fit; a raw file would write a part and say so in a number."""
    rest = memoryview(data)
    while rest:
        rest = rest[file.write(rest) :]
