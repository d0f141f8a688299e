"""The ack journal: what this replica has ACKed and the ledger does not have yet, in a file that outlives the process.

A line is written after the delivery report and before the answer, so a killed replica's ACKs are still told when it
comes back. Two files take turns: one grows while the other's content is on its way to the audit topic.
"""

import os
from pathlib import Path

import msgspec

from dataplane.runtime.lines import append_to, read_lines, write_all


class Ack(msgspec.Struct, array_like=True):
    """Units of one pipe and bucket that were ACKed together. `producer`: the one that stored them, 0 if unknown."""

    cell: str
    pipe: str
    bucket: int
    positions: list[int]
    producer: int = 0


_decoder = msgspec.json.Decoder(Ack)
_encode = msgspec.json.Encoder().encode


class AckJournal:
    """Append with `write`; `rotate` when the facts so far go out as an audit record; `told` when that is stored."""

    def __init__(self, folder: Path, replica: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._growing, self._sent = folder / f"{replica}.acks", folder / f"{replica}.acks-sent"
        self.left_behind = [*_read(self._sent), *_read(self._growing)]
        self._file = append_to(self._growing)
        self._torn_at: int | None = None  # what stands from here on was not written whole, and does not count

    def write(self, acks: list[Ack]) -> None:
        """Hand the lines to the operating system: one write. Raises OSError if they do not fit; then none counts."""
        self._mend()
        before = os.fstat(self._file.fileno()).st_size
        try:
            write_all(self._file, b"".join(_encode(ack) + b"\n" for ack in acks))
        except OSError:
            self._torn_at = before
            self._mend()
            raise

    def rotate(self) -> None:
        """Begin a new file; what was written so far is about to be told. The one before must have been told.

        Raises OSError if the disk does not take it; nothing is lost then, and it may be asked for again.
        """
        self._mend()
        if self._sent.exists():  # left behind by a run that was killed: told together with what has grown since
            with append_to(self._sent) as kept:
                write_all(kept, self._growing.read_bytes())
            self._growing.unlink()
        else:
            os.replace(self._growing, self._sent)  # noqa: PTH105
        self._file.close()
        self._file = append_to(self._growing)

    def _mend(self) -> None:
        """Take away what a failed write left; open the file again if a failed rotation left it closed."""
        if self._file.closed:
            self._file = append_to(self._growing)
        if self._torn_at is not None:
            self._file.truncate(self._torn_at)
            self._torn_at = None

    def told(self) -> None:
        """The ledger has it: the older file is of no more use."""
        self._sent.unlink(missing_ok=True)

    def close(self) -> None:
        """Close the file; what is in it is told by the next run."""
        self._file.close()


def _read(path: Path) -> list[Ack]:
    return [_decoder.decode(line) for line in read_lines(path)]  # a line that a crash cut off was not answered
