"""JSON as ingest takes it: what another parser could read differently is refused. Pure."""

import json
import re
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from dataplane.ingest.problems import RefusalError

MAX_DEPTH: Final = 64
_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode
_BRACKETS: Final = bytes(c for c in range(256) if c not in b"[]{}")


def parse(body: bytes) -> Any:
    """Decode strictly: no NaN, no lone surrogate, no key twice, at most MAX_DEPTH levels, UTF-8.

    Raises RefusalError `json-invalid` (with the byte), `json-duplicate-key` or `json-too-deep`.
    """
    if _may_be_deep(body):
        raise RefusalError(400, "json-too-deep", f"needs at most {MAX_DEPTH} levels of nesting")
    try:
        value = _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as exc:
        raise RefusalError(400, "json-invalid", _sentence(exc, body)) from exc
    if _may_repeat_keys(body, value):
        _refuse_repeated_keys(body)
    return value


def parse_all(array: bytes, items: Sequence[bytes]) -> list[Any] | None:
    """The decoded `items` of a JSON array, all at once; None if one of them needs a closer look, by `parse`."""
    if any(_opened(item) > MAX_DEPTH for item in items):
        return None
    try:
        values: list[Any] = _decode(array)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return None if _may_repeat_keys(array, values) else values


def _sentence(exc: Exception, body: bytes) -> str:
    if isinstance(exc, UnicodeDecodeError):
        return "the text is not UTF-8"
    text = str(exc)
    return f"{text} (byte {len(body)})" if "byte" not in text else text


def _may_be_deep(body: bytes) -> bool:
    """Depth by brackets alone: exact unless brackets stand in strings, which are then looked at closely."""
    if _opened(body) <= MAX_DEPTH or _depth(body.translate(None, _BRACKETS)) <= MAX_DEPTH:
        return False
    return _depth(re.sub(rb'"(?:[^"\\]|\\.)*"', b'""', body)) > MAX_DEPTH


def _opened(text: bytes) -> int:
    return text.count(b"{") + text.count(b"[")


def _depth(text: bytes) -> int:
    depth = deepest = 0
    for byte in text:
        if byte in b"[{":
            depth += 1
            deepest = max(deepest, depth)
        elif byte in b"]}":
            depth -= 1
    return deepest


def _may_repeat_keys(body: bytes, value: Any) -> bool:
    """Whether the text may have keys that its decoded form has lost. Never False if it has; a hot path.

    A key that was lost took its colon with it, and nothing but an escaped colon could make up for that when the value
    is written anew.
    """
    if type(value) not in (dict, list):
        return False
    if body.count(b":") != _encode(value).count(b":"):
        return True
    return b"\\u" in body and (b"\\u003a" in body or b"\\u003A" in body)


def _refuse_repeated_keys(body: bytes) -> None:
    def unique(pairs: list[tuple[str, Any]]) -> None:
        keys = [key for key, _ in pairs]
        if len(keys) != len(set(keys)):
            repeated = next(key for key in keys if keys.count(key) > 1)
            raise RefusalError(400, "json-duplicate-key", f"the key {repeated[:40]!r} stands twice in one object")

    json.loads(body, object_pairs_hook=unique, parse_int=str, parse_float=str)
