"""Stamp events with id, event time, bucket, revision and key. Pure: time and randomness are arguments."""

import zlib
from collections.abc import Sequence
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any, Final

import msgspec

MAX_KEY_BYTES: Final = 256
SPREAD_US: Final = 10_000  # as librdkafka does by default (sticky.partitioning.linger.ms)
_VARIANTS: Final = {digit: "89ab"[int(digit, 16) & 3] for digit in "0123456789abcdef"}  # two bits are fixed by the RFC


def message_id(now_us: int, chance: str) -> str:
    """Return a UUID version 7 (RFC 9562): 48 bits of milliseconds, then 74 random bits.

    chance: the random bits, as 19 hexadecimal digits
    """
    return id_head(now_us) + id_tail(chance)


def id_head(now_us: int) -> str:
    """Return the time part of a message id."""
    time = f"{now_us // 1_000:012x}"
    return f"{time[:8]}-{time[8:]}-7"


def id_tail(chance: str) -> str:
    """Return the random part of a message id."""
    return f"{chance[:3]}-{_VARIANTS[chance[3]]}{chance[4:7]}-{chance[7:]}"


def event_time_us(value: Any) -> int | None:
    """Return a source's own time as microseconds since the epoch, or None if it is not readable.

    It is RFC 3339 text with an offset, or a number: seconds, milliseconds or microseconds, distinguished by magnitude.
    """
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            return None
        return None if moment.tzinfo is None else _epoch_us(moment)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e17:
        return None
    scale = 1_000_000 if value < 1e11 else 1_000 if value < 1e14 else 1
    return int(value * scale)


def _epoch_us(moment: datetime) -> int:
    delta = moment - datetime(1970, 1, 1, tzinfo=UTC)  # without astimezone: it would overflow for year 1 or 9999
    return (delta.days * 86_400 + delta.seconds) * 1_000_000 + delta.microseconds


def key_bytes(pipe: str, value: Any) -> bytes | None:
    """Return the Kafka key for (pipe, value at the source's key path); None if there is no usable value."""
    if value is None:
        return None
    text = value.encode() if isinstance(value, str) else msgspec.json.encode(value)
    if len(text) > MAX_KEY_BYTES:
        text = f"{zlib.crc32(text):08x}".encode() + text[: MAX_KEY_BYTES - 8]
    return pipe.encode() + b"\0" + text


def partition_of(key: bytes, partitions: int) -> int:
    """Return the partition that librdkafka's `consistent_random` gives to a key, which must not be empty."""
    return zlib.crc32(key) % partitions


class PartitionSpreader:
    """Chooses partitions for records without a key: each for SPREAD_US in turn, so that few requests carry many."""

    def __init__(self, first: int) -> None:
        """Begin at partition `first`, which should differ between replicas."""
        self._partition = first
        self._until_us = 0

    def at(self, now_us: int, partitions: int) -> int:
        """Return the partition for records that arrive at `now_us`."""
        if now_us >= self._until_us:
            self._until_us = now_us + SPREAD_US
            self._partition += 1
        return self._partition % partitions


def choose_revision(weights: Sequence[tuple[int, int]], key: bytes) -> int | None:
    """Return the revision for a key by ramp weights (percent): sticky by key; None if no revision takes traffic.

    The hash differs from the one that chooses the partition, or one percent would be one partition's; and it includes
    the revision, or the same keys would be the first of every ramp.
    """
    if len(weights) == 1 and weights[0][1] >= 100:
        return weights[0][0]
    newest = max((revision for revision, _ in weights), default=0)
    digest = blake2b(key, digest_size=8, salt=newest.to_bytes(8, "big")).digest()
    percentile, limit = int.from_bytes(digest, "big") % 100, 0
    for revision, share in weights:
        limit += share
        if percentile < limit:
            return revision
    return weights[-1][0] if limit else None
