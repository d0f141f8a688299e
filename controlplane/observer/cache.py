"""Cache of the stored bytes of rows that still receive merges, so that most merges need no read."""

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from typing import Any, Final

MOST_BYTES: Final = 64 * 1024 * 1024
ENTRY_BYTES: Final = 430  # approximate cost of an entry in addition to its content
KEPT_S: Final = 600.0  # most minutes are sealed sooner; a later merge reads its row again


class ByteCache:
    """LRU cache of at most `limit` bytes; evicts entries that were not used for KEPT_S."""

    def __init__(self, limit: int = MOST_BYTES, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit = limit
        self._clock = clock
        self._entries: OrderedDict[Hashable, tuple[float, bytes]] = OrderedDict()  # time of the last use, content
        self._size = 0

    def get(self, key: Hashable) -> bytes | None:
        """Return the cached bytes of `key`, None if there are none."""
        if (entry := self._entries.pop(key, None)) is None:
            return None
        self._entries[key] = self._clock(), entry[1]
        return entry[1]

    def __contains__(self, key: Hashable) -> bool:
        return key in self._entries

    def update(self, entries: Mapping[Any, bytes]) -> None:
        """Add entries; evict unused ones, and the least recently used ones above the limit."""
        now_s = self._clock()
        for key, value in entries.items():
            self._drop(key)
            self._entries[key] = now_s, value
            self._size += len(value) + ENTRY_BYTES
        while self._entries:
            oldest = next(iter(self._entries))
            if self._size <= self._limit and self._entries[oldest][0] > now_s - KEPT_S:
                break
            self._drop(oldest)

    def clear(self) -> None:
        """Remove all entries."""
        self._entries.clear()
        self._size = 0

    def _drop(self, key: Hashable) -> None:
        if (entry := self._entries.pop(key, None)) is not None:
            self._size -= len(entry[1]) + ENTRY_BYTES
