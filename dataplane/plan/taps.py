"""Taps: the records in which a process lane passes an event's values to the windows query. Pure."""

from collections.abc import Mapping
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any

import msgspec
from msgspec import Struct

from dataplane.ledger.meta import MessageMeta
from dataplane.names import window_node
from dataplane.plan.panes import SECOND_US, WindowResult
from dataplane.spec.windows import WindowSpec
from dataplane.stages.paths import MISSING, compile_path, get

_sorted = msgspec.json.Encoder(order="sorted")


class TapRecord(Struct, array_like=True, frozen=True):
    """Values of one event for one window, with the window's definition, so that the topic has all that a result needs.

    at_us:  event time in microseconds since 1970, at most the ingest time
    by:     values of the key, as JSON
    values: one value per aggregate, in the order of their names, or null
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


class TapClock(Struct, array_like=True, frozen=True):
    """Record without a key: all events ingested before `clock_us` have been tapped."""

    clock_us: int


_taps = msgspec.msgpack.Decoder(TapRecord)
_clocks = msgspec.msgpack.Decoder(TapClock)
_encode = msgspec.msgpack.Encoder().encode


def encode_clock(clock: TapClock) -> bytes:
    """Return the clock as MessagePack."""
    return _encode(clock)


def encode_tap(tap: TapRecord) -> bytes:
    """Return the tap as MessagePack. Values that MessagePack cannot represent are replaced (`_carried`)."""
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


def decode_tap(value: bytes) -> TapRecord:
    """Return the tap in a record's value. Raises msgspec.DecodeError for any other bytes."""
    return _taps.decode(value)


def decode_clock(value: bytes) -> int:
    """Return the clock in microseconds since 1970. Raises msgspec.DecodeError for any other bytes."""
    return _clocks.decode(value).clock_us


class CompiledTap:
    """One window of a pipe, compiled for the lanes."""

    def __init__(self, name: str, window: WindowSpec) -> None:
        self.name, self.node = name, window_node(name)
        self.definition = _sorted.encode(window)
        self._by = [compile_path(path) for path in window.by]
        # In the order of the names, as in the definition. An aggregate without a path counts every event.
        ordered = [window.values[name] for name in sorted(window.values)]
        self._values = [None if value.of is None else compile_path(value.of) for value in ordered]
        self._late_us = window.late_s * SECOND_US

    def tap(self, meta: MessageMeta, body: Any) -> TapRecord | None:
        """Return the tap of an event; None if the event is late: more than late_s behind its ingest time.

        An event that was held before the steps is late as well: the clock has passed it.
        """
        at_us = min(meta.event_time_us, meta.ingest_time_us)
        if meta.attempt or meta.ingest_time_us - at_us > self._late_us:
            return None
        by = key_values([_value(body, path) for path in self._by])
        values = [1 if path is None else _value(body, path) for path in self._values]
        where = (meta.position, meta.child, meta.bucket)
        return TapRecord(meta.pipe, meta.revision, self.name, self.definition, by, at_us, values, *where)


def key_values(values: list[Any]) -> bytes:
    """Return the values of a key as a tap carries them."""
    return _sorted.encode(values)


def key_of(tap: TapRecord) -> bytes:
    """Return a 16-byte digest of (pipe, window, its definition, key): taps with the same digest share panes."""
    return key_digest(tap.pipe, tap.window, tap.definition, tap.by)


def key_digest(pipe: str, window: str, definition: bytes, by: bytes) -> bytes:
    """Return the digest of `key_of`, computed from its parts."""
    return blake2b(b"\0".join((pipe.encode(), window.encode(), definition, by)), digest_size=16).digest()


def digest_partition(key: bytes, partitions: int) -> int:
    """Return the partition of the `taps` and of the `panes` topic that has the records of a key (`key_of`)."""
    return int.from_bytes(key[:4]) % partitions


def result_id(key: bytes, closed: WindowResult) -> str:
    """Return the id of a result: deterministic, so that a recomputed result has the same id."""
    digest = blake2b(b"%b %d %d" % (key, closed.start_us, closed.end_us), digest_size=16).hexdigest()
    return f"{digest[:8]}-{digest[8:12]}-{digest[12:16]}-{digest[16:20]}-{digest[20:]}"


def result_body(tap: TapRecord, closed: WindowResult) -> bytes:
    """Return the body of the message that a closed window becomes."""
    return msgspec.json.encode({"window": tap.window, **_span_of(closed), "by": _key_of(tap), **_counted(closed)})


def current_body(tap: TapRecord, open_: list[WindowResult], clock_us: int) -> bytes:
    """Return the current values of a key's open windows; `as_of`: all earlier events are included, null at first."""
    panes = [{**_span_of(one), **_counted(one)} for one in open_]
    as_of = _iso(clock_us) if clock_us else None
    return msgspec.json.encode({"window": tap.window, "by": _key_of(tap), "as_of": as_of, "open": panes})


def _key_of(tap: TapRecord) -> Mapping[str, Any]:
    definition = msgspec.json.decode(tap.definition, type=WindowSpec)
    return dict(zip(definition.by, msgspec.json.decode(tap.by), strict=True))


def _span_of(closed: WindowResult) -> Mapping[str, Any]:
    return {"start": _iso(closed.start_us), "end": _iso(closed.end_us)}


def _counted(closed: WindowResult) -> Mapping[str, Any]:
    return {"events": closed.events, "values": closed.values}


def _iso(at_us: int) -> str:
    seconds, rest_us = divmod(at_us, SECOND_US)
    return datetime.fromtimestamp(seconds, UTC).replace(microsecond=rest_us).isoformat().replace("+00:00", "Z")


def _value(body: Any, path: tuple[str, ...]) -> Any:
    value = get(body, path)
    return None if value is MISSING else value
