"""TimeUuid: a UUID whose clock orders events. Version 7 (RFC 9562) is created; version 1 is accepted, too."""

import functools
import secrets
import threading
import time
import uuid
from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EARLIEST_US = 946_684_800_000_000  # 2000-01-01, as Penstock checks it
_GREGORIAN_TO_UNIX_US = 12_219_292_800_000_000
_lock = threading.Lock()
_last = 0


@functools.total_ordering
class TimeUuid:
    """UUID of version 1 or 7. Those that `now` returns in one process ascend."""

    __slots__ = ("_uuid",)

    def __init__(self, value: str | uuid.UUID) -> None:
        """Take a text or a UUID. Raises ValueError for a text or UUID that is not a TimeUuid."""
        self._uuid = value if isinstance(value, uuid.UUID) else uuid.UUID(value)
        if len(str(value)) != 36 or self._uuid.variant != uuid.RFC_4122 or self._uuid.version not in (1, 7):
            raise ValueError("needs a UUID of version 1 or 7")
        if self.clock_us < _EARLIEST_US:
            raise ValueError("needs a UUID whose clock is after 1999")

    @classmethod
    def now(cls) -> "TimeUuid":
        """Return a new version 7: milliseconds, twelve bits of their fraction, and random bits."""
        return cls(uuid.UUID(int=_next_clock() | secrets.randbits(62)))

    @property
    def clock_us(self) -> int:
        """Return the clock in microseconds since 1970."""
        if self._uuid.version == 7:
            return (self._uuid.int >> 80) * 1_000
        return self._uuid.time // 10 - _GREGORIAN_TO_UNIX_US

    @property
    def time(self) -> datetime:
        """Return the clock."""
        return _EPOCH + timedelta(microseconds=self.clock_us)

    @property
    def uuid(self) -> uuid.UUID:
        """Return the UUID."""
        return self._uuid

    def __str__(self) -> str:
        return str(self._uuid)

    def __repr__(self) -> str:
        return f"TimeUuid('{self._uuid}')"

    def __hash__(self) -> int:
        return hash(self._uuid)

    def __eq__(self, other: object) -> bool:
        return self._uuid == other._uuid if isinstance(other, TimeUuid) else NotImplemented

    def __lt__(self, other: "TimeUuid") -> bool:
        return (self.clock_us, self._uuid.bytes) < (other.clock_us, other._uuid.bytes)


def _next_clock() -> int:
    """Return all bits of a version 7 but the random ones; each result is higher than the last one."""
    global _last  # noqa: PLW0603 one clock for the process
    now_ns = time.time_ns()
    with _lock:
        _last = max(_last + 1, now_ns // 1_000_000 << 12 | now_ns % 1_000_000 * 4_096 // 1_000_000)
        clock = _last
    return (clock >> 12) << 80 | 7 << 76 | (clock & 0xFFF) << 64 | 0b10 << 62
