"""What a lane would say once a message, said once a second with its count: a storm of dead letters fills no log."""

import logging
from collections import Counter
from typing import Final

log = logging.getLogger(__name__)

MOST_LINES: Final = 50  # a second; what is beyond them is counted together


class Tally:
    """`add` for every message, `write` on every heartbeat."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._others = 0

    def add(self, line: str) -> None:
        """One more of these."""
        if line in self._counts or len(self._counts) < MOST_LINES:
            self._counts[line] += 1
        else:
            self._others += 1

    def write(self) -> None:
        """A line for each outcome since the last time, the most frequent first."""
        for line, count in self._counts.most_common():
            log.warning("%s count=%d", line, count)
        if self._others:
            log.warning("and others: count=%d", self._others)
        self._counts.clear()
        self._others = 0
