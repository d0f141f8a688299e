"""Cache of the stored bytes of rows that still receive merges, so that most merges need no read."""

from collections import OrderedDict
from collections.abc import Hashable, Mapping
from typing import Any, Final

MOST_BYTES: Final = 64 * 1024 * 1024
ENTRY_BYTES: Final = 300  # approximate cost of an entry in addition to its content


class ByteCache:
    """LRU cache of at most `limit` bytes."""

    def __init__(self, limit: int = MOST_BYTES) -> None:
        self._limit = limit
        self._entries: OrderedDict[Hashable, bytes] = OrderedDict()
        self._size = 0

    def get(self, key: Hashable) -> bytes | None:
        """Return the cached bytes of `key`, None if there are none."""
        if (value := self._entries.get(key)) is not None:
            self._entries.move_to_end(key)
        return value

    def __contains__(self, key: Hashable) -> bool:
        return key in self._entries

    def update(self, entries: Mapping[Any, bytes]) -> None:
        """Add entries; evict the least recently used ones above the limit."""
        for key, value in entries.items():
            self._size += len(value) + ENTRY_BYTES - self._drop(key)
            self._entries[key] = value
        while self._size > self._limit:
            key, value = self._entries.popitem(last=False)
            self._size -= len(value) + ENTRY_BYTES

    def clear(self) -> None:
        """Remove all entries."""
        self._entries.clear()
        self._size = 0

    def _drop(self, key: Hashable) -> int:
        value = self._entries.pop(key, None)
        return 0 if value is None else len(value) + ENTRY_BYTES
