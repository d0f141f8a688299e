"""The ACK journal: a file, outliving the process, of the ACKs of this replica that the ledger does not have yet.

A line is written after the delivery report and before the response, so a killed replica's ACKs are still reported when
it restarts. There are two files: one grows while the content of the other is being sent to the audit topic.
"""

import os
from pathlib import Path

import msgspec

from dataplane.runtime.line_files import append_to, read_lines, write_all


class JournalledAck(msgspec.Struct, array_like=True):
    """Units of one pipe and bucket, ACKed together. `producer`: the instance that stored them, 0 if unknown."""

    cell: str
    pipe: str
    bucket: int
    positions: list[int]
    producer: int = 0


_decoder = msgspec.json.Decoder(JournalledAck)
_encode = msgspec.json.Encoder().encode


class AckJournal:
    """File of unreported ACKs: `write` appends, `rotate` begins a new file, `reported` deletes the older one.

    Call `rotate` when the facts so far are sent as audit records, and `reported` when those are stored.
    """

    def __init__(self, folder: Path, replica: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._growing, self._sent = folder / f"{replica}.acks", folder / f"{replica}.acks-sent"
        self.left_behind = [*_read(self._sent), *_read(self._growing)]
        self._file = append_to(self._growing)
        self._torn_at: int | None = None  # bytes from here on were not written completely and do not count

    def write(self, acks: list[JournalledAck]) -> None:
        """Write the lines to the file in one write. Raises OSError if they cannot be written; then none counts."""
        self._repair()
        before = os.fstat(self._file.fileno()).st_size
        try:
            write_all(self._file, b"".join(_encode(ack) + b"\n" for ack in acks))
        except OSError:
            self._torn_at = before
            self._repair()
            raise

    def rotate(self) -> None:
        """Begin a new file; the entries so far are about to be reported. Those of the file before must have been.

        Raises OSError if the disk refuses; then nothing is lost, and the call may be repeated.
        """
        self._repair()
        if self._sent.exists():  # left by a killed run: reported together with the entries written since
            with append_to(self._sent) as kept:
                write_all(kept, self._growing.read_bytes())
            self._growing.unlink()
        else:
            os.replace(self._growing, self._sent)  # noqa: PTH105
        self._file.close()
        self._file = append_to(self._growing)

    def _repair(self) -> None:
        """Remove the remains of a failed write; reopen the file if a failed rotation left it closed."""
        if self._file.closed:
            self._file = append_to(self._growing)
        if self._torn_at is not None:
            self._file.truncate(self._torn_at)
            self._torn_at = None

    def reported(self) -> None:
        """Delete the older file: the ledger has its entries."""
        self._sent.unlink(missing_ok=True)

    def close(self) -> None:
        """Close the file; the next run reports what is in it."""
        self._file.close()


def _read(path: Path) -> list[JournalledAck]:
    return [_decoder.decode(line) for line in read_lines(path)]  # a line that a crash cut off had no response
