"""The newest stored bytes of rows that are still being merged into, so that most merges need no read."""

from collections import OrderedDict
from collections.abc import Hashable, Mapping
from typing import Any, Final

MOST_BYTES: Final = 64 * 1024 * 1024
ENTRY_BYTES: Final = 300  # what an entry costs beside its content, about


class ByteCache:
    """Least recently used entries go first when it holds more than `limit` bytes."""

    def __init__(self, limit: int = MOST_BYTES) -> None:
        self._limit = limit
        self._entries: OrderedDict[Hashable, bytes] = OrderedDict()
        self._size = 0

    def get(self, key: Hashable) -> bytes | None:
        """The bytes stored under `key`, if they are still here."""
        if (value := self._entries.get(key)) is not None:
            self._entries.move_to_end(key)
        return value

    def __contains__(self, key: Hashable) -> bool:
        return key in self._entries

    def update(self, entries: Mapping[Any, bytes]) -> None:
        """Keep these; forget the oldest if need be."""
        for key, value in entries.items():
            self._size += len(value) + ENTRY_BYTES - self._drop(key)
            self._entries[key] = value
        while self._size > self._limit:
            key, value = self._entries.popitem(last=False)
            self._size -= len(value) + ENTRY_BYTES

    def clear(self) -> None:
        """Forget everything."""
        self._entries.clear()
        self._size = 0

    def _drop(self, key: Hashable) -> int:
        value = self._entries.pop(key, None)
        return 0 if value is None else len(value) + ENTRY_BYTES
