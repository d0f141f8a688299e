"""Taps: what a window takes from an event, and the records in which that travels to the query. Pure."""

from collections.abc import Mapping
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any

import msgspec
from msgspec import Struct

from dataplane.ledger.meta import Meta
from dataplane.names import window_node
from dataplane.plan.panes import SECOND_US, Closed
from dataplane.spec.windows import Window
from dataplane.stages.paths import MISSING, compile_path, get

_sorted = msgspec.json.Encoder(order="sorted")


class Tap(Struct, array_like=True, frozen=True):
    """One event as one window takes it. It carries the window's definition: the topic says all that a result needs.

    at_us:    the event's time, clamped to ingest_time
    by:       the key's values, as JSON
    values:   for each aggregate, the value, or null
    """

    pipe: str
    revision: int
    window: str
    definition: bytes
    by: bytes
    at_us: int
    values: list[Any]
    position: int
    child: int
    bucket: int


class Clock(Struct, array_like=True, frozen=True):
    """A record without a key: everything that was ingested before this moment has been tapped."""

    clock_us: int


_taps = msgspec.msgpack.Decoder(Tap)
_clocks = msgspec.msgpack.Decoder(Clock)
_encode = msgspec.msgpack.Encoder().encode


def encode_clock(clock: Clock) -> bytes:
    """Encode a clock."""
    return _encode(clock)


def encode_tap(tap: Tap) -> bytes:
    """Encode a tap. A value of the event that MessagePack cannot carry is replaced (`_carried`)."""
    try:
        return _encode(tap)
    except (OverflowError, RecursionError):
        return _encode(msgspec.structs.replace(tap, values=[_carried(value) for value in tap.values]))


def _carried(value: Any) -> Any:
    """Return an integer beyond 64 bits as a double; None for a larger one, and for a value nested too deeply."""
    try:
        if type(value) is int and not -(1 << 63) <= value < 1 << 64:
            return float(value)
        _encode(value)
    except (OverflowError, RecursionError):
        return None
    return value


def decode_tap(value: bytes) -> Tap:
    """Raises msgspec.DecodeError."""
    return _taps.decode(value)


def decode_clock(value: bytes) -> int:
    """The moment, in microseconds. Raises msgspec.DecodeError."""
    return _clocks.decode(value).clock_us


class Tapping:
    """One window of a pipe, compiled for the lanes."""

    def __init__(self, name: str, window: Window) -> None:
        self.name, self.node = name, window_node(name)
        self.definition = _sorted.encode(window)
        self._by = [compile_path(path) for path in window.by]
        # whatever an event is, it counts
        self._values = [None if value.of is None else compile_path(value.of) for value in window.values.values()]
        self._late_us = window.late_s * SECOND_US

    def tap(self, meta: Meta, body: Any) -> Tap | None:
        """What the window takes from an event; None if it is late: too far behind our clock, whoever's fault it is.

        One that was held before the steps is late: the clock has gone on without it.
        """
        at_us = min(meta.event_time_us, meta.ingest_time_us)
        if meta.attempt or meta.ingest_time_us - at_us > self._late_us:
            return None
        by = key_values([_value(body, path) for path in self._by])
        values = [1 if path is None else _value(body, path) for path in self._values]
        where = (meta.position, meta.child, meta.bucket)
        return Tap(meta.pipe, meta.revision, self.name, self.definition, by, at_us, values, *where)


def key_values(values: list[Any]) -> bytes:
    """The values of a key as they travel."""
    return _sorted.encode(values)


def key_of(tap: Tap) -> bytes:
    """16 bytes for (pipe, window as it is defined, key): what is aggregated together."""
    return key_digest(tap.pipe, tap.window, tap.definition, tap.by)


def key_digest(pipe: str, window: str, definition: bytes, by: bytes) -> bytes:
    """The same from its parts."""
    return blake2b(b"\0".join((pipe.encode(), window.encode(), definition, by)), digest_size=16).digest()


def pane_place(key: bytes, partitions: int) -> int:
    """The partition of the `panes` topic on which a key's current values are."""
    return int.from_bytes(key[:4]) % partitions


def result_id(key: bytes, closed: Closed) -> str:
    """The id of a result: the same whenever and however often it is worked out."""
    digest = blake2b(b"%b %d %d" % (key, closed.start_us, closed.end_us), digest_size=16).hexdigest()
    return f"{digest[:8]}-{digest[8:12]}-{digest[12:16]}-{digest[16:20]}-{digest[20:]}"


def result_body(tap: Tap, closed: Closed) -> bytes:
    """The message that a closed window is."""
    return msgspec.json.encode({"window": tap.window, **_span_of(closed), "by": _key_of(tap), **_counted(closed)})


def current_body(tap: Tap, open_: list[Closed], clock_us: int) -> bytes:
    """What the open windows of a key say; `as_of`: all that came before is in; null at the beginning."""
    panes = [{**_span_of(one), **_counted(one)} for one in open_]
    as_of = _iso(clock_us) if clock_us else None
    return msgspec.json.encode({"window": tap.window, "by": _key_of(tap), "as_of": as_of, "open": panes})


def _key_of(tap: Tap) -> Mapping[str, Any]:
    definition = msgspec.json.decode(tap.definition, type=Window)
    return dict(zip(definition.by, msgspec.json.decode(tap.by), strict=True))


def _span_of(closed: Closed) -> Mapping[str, Any]:
    return {"start": _iso(closed.start_us), "end": _iso(closed.end_us)}


def _counted(closed: Closed) -> Mapping[str, Any]:
    return {"events": closed.events, "values": closed.values}


def _iso(at_us: int) -> str:
    seconds, rest_us = divmod(at_us, SECOND_US)
    return datetime.fromtimestamp(seconds, UTC).replace(microsecond=rest_us).isoformat().replace("+00:00", "Z")


def _value(body: Any, path: tuple[str, ...]) -> Any:
    value = get(body, path)
    return None if value is MISSING else value
