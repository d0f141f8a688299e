"""Strict JSON for ingest: refuse text that another parser could read differently. Pure.

Every check is linear in the text: senders choose it, and one event loop serves them all.
"""

import json
from collections.abc import Sequence
from typing import Any, Final

import msgspec
import numpy as np

from dataplane.ingest.problems import EventRejectedError
from dataplane.stages.decoding import decode_json

MAX_DEPTH: Final = 64
_encode = msgspec.json.Encoder().encode
_NO_BRACKETS: Final = bytes(byte for byte in range(256) if byte not in b"[]{}")
_TO_STEPS: Final = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")  # one level up or down, as signed bytes


def parse(body: bytes) -> Any:
    """Decode strictly: no NaN, no lone surrogate, no duplicate key, at most MAX_DEPTH levels, UTF-8.

    Raises EventRejectedError `json-invalid` (with the byte), `json-duplicate-key` or `json-too-deep`.
    """
    try:
        value = decode_json(body)
    except RecursionError as exc:
        raise _too_deep() from exc
    except (msgspec.DecodeError, UnicodeDecodeError) as exc:
        raise EventRejectedError(400, "json-invalid", _sentence(exc, body)) from exc
    if _may_be_deep(body) and _depth(body) > MAX_DEPTH:
        raise _too_deep()
    if _may_repeat_keys(body, value) and _keys(body) != _keys(_encode(value)):
        _refuse_repeated_keys(body)
    return value


def parse_all(items: Sequence[bytes]) -> list[Any] | None:
    """Decode many items; return None if each must be checked with `parse`.

    Each is decoded on its own: items such as `[1` and `2]` are not JSON, although they are one array when joined.
    """
    if any(map(_may_be_deep, items)):
        return None
    try:
        values = [decode_json(item) for item in items]
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return None if _may_repeat_keys(b"[" + b",".join(items) + b"]", values) else values


def _too_deep() -> EventRejectedError:
    return EventRejectedError(400, "json-too-deep", f"needs at most {MAX_DEPTH} levels of nesting")


def _sentence(exc: Exception, body: bytes) -> str:
    if isinstance(exc, UnicodeDecodeError):
        return "the text is not UTF-8"
    text = str(exc)
    return f"{text} (byte {len(body)})" if "byte" not in text else text


def _may_be_deep(text: bytes) -> bool:
    """Return False only if the text cannot have more than MAX_DEPTH levels. A hot path."""
    return text.count(b"{") + text.count(b"[") > MAX_DEPTH


def _depth(text: bytes) -> int:
    """Return the levels of nesting of valid JSON."""
    steps = np.frombuffer(_without_strings(text).translate(_TO_STEPS, _NO_BRACKETS), np.int8)
    return int(steps.cumsum(dtype=np.int32).max(initial=0))


def _may_repeat_keys(text: bytes, value: Any) -> bool:
    """Return False only if decoding the text into `value` has lost no key. A hot path.

    A lost key loses its colon too, and when the value is encoded again, only an escaped colon could make up for it.
    """
    if type(value) not in (dict, list):
        return False
    if text.count(b":") != _encode(value).count(b":"):
        return True
    return b"\\u" in text and (b"\\u003a" in text or b"\\u003A" in text)


def _keys(text: bytes) -> int:
    """Return the number of keys in valid JSON."""
    return _without_strings(text).count(b":")


def _without_strings(text: bytes) -> bytes:
    """Return valid JSON without everything between quotes."""
    if b"\\" in text:
        text = text.replace(b"\\\\", b"").replace(b'\\"', b"")  # now every quote begins or ends a string
    return b"".join(text.split(b'"')[::2])


def _refuse_repeated_keys(body: bytes) -> None:
    """Raise EventRejectedError `json-duplicate-key`, naming the first duplicate key of an object."""

    def check(pairs: list[tuple[str, Any]]) -> None:
        if len(pairs) < 2 or len(dict(pairs)) == len(pairs):
            return
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise EventRejectedError(400, "json-duplicate-key", f"duplicate key {key[:40]!r} in one object")
            seen.add(key)

    json.loads(body, object_pairs_hook=check, parse_int=str, parse_float=str)
