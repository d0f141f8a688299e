"""Aggregate per-message log lines into one line a second with a count: many dead letters must not fill the log."""

import logging
from collections import Counter
from typing import Final

log = logging.getLogger(__name__)

MOST_LINES: Final = 50  # distinct lines per write; further ones are counted together


class MessageTally:
    """Counts of log lines: `add` for every message, `write` on every heartbeat."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._others = 0

    def add(self, line: str) -> None:
        """Count a line."""
        if line in self._counts or len(self._counts) < MOST_LINES:
            self._counts[line] += 1
        else:
            self._others += 1

    def write(self) -> None:
        """Log each distinct line since the last call with its count, the most frequent first."""
        for line, count in self._counts.most_common():
            log.warning("%s count=%d", line, count)
        if self._others:
            log.warning("other messages: count=%d", self._others)
        self._counts.clear()
        self._others = 0
