"""Messages of the tiers that are due, and that a running early release returns: the lane keeps them until it has.

Another pass through a tier would make a second copy: the release returns the first, and the copy follows at its end.
"""

from collections import defaultdict
from collections.abc import Container
from typing import Final

from dataplane.retrier.retry_messages import RetryMessage

MOST: Final = 1_500  # of a partition; its other messages need the rest of the ack window (work.WINDOW)
MOST_BYTES: Final = 1_536 * 1024  # likewise, of work.WINDOW_BYTES


class CoveredMessages:
    """Messages by slot, within limits for each: they hold back the offsets that the lane can commit."""

    def __init__(self) -> None:
        self._messages: defaultdict[int, list[RetryMessage]] = defaultdict(list)
        self._bytes: defaultdict[int, int] = defaultdict(int)

    def keep(self, retry: RetryMessage) -> bool:
        """Keep a message; return False if its slot is at a limit."""
        kept, size = self._messages[retry.slot], len(retry.message.value() or b"")
        if len(kept) >= MOST or self._bytes[retry.slot] + size > MOST_BYTES:
            return False
        kept.append(retry)
        self._bytes[retry.slot] += size
        return True

    def take_all(self) -> list[RetryMessage]:
        """Return and drop all messages, those of a slot in their order."""
        taken = [retry for kept in self._messages.values() for retry in kept]
        self._messages.clear()
        self._bytes.clear()
        return taken

    def drop(self, slots: Container[int]) -> None:
        """Drop the messages of these slots."""
        for retry in self.take_all():
            if retry.slot not in slots:
                self.keep(retry)
