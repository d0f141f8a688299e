"""Log of the receiver, read as it grows, so that a wait for the last deliveries takes little CPU time."""

import os
from pathlib import Path


class ReceivedLog:
    """Times at which the receiver answered each message (ns since the epoch), by message id."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._offset = 0
        self._times: dict[str, int] = {}

    def times(self) -> dict[str, int]:
        """Return the times of all messages since the log was emptied; of a repeated message, the last one."""
        with self.path.open("rb") as file:
            file.seek(self._offset)
            for line in file:
                if not line.endswith(b"\n"):  # it is still being written
                    break
                self._offset += len(line)
                at_us, message_id, _, _ = line.split(b"\t")
                self._times[message_id.decode()] = int(at_us) * 1_000
        return self._times

    def empty(self) -> None:
        """Remove all lines; the receiver appends to the log, so it may run."""
        self.path.touch()
        os.truncate(self.path, 0)
        self._offset = 0
        self._times = {}
