"""Masks: replacements for values that must not be visible."""

import hmac
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import msgspec

HASH_CHARS: Final = 32  # 128 bits of HMAC-SHA256: two values of a tenant do not collide by chance
_encode = msgspec.json.Encoder(order="deterministic", decimal_format="number").encode


def masker(how: str, salt: bytes) -> Callable[[Any], str]:
    """Return the mask that the spec calls `how`; only `hash` uses the salt."""
    return partial(_hash, salt) if how == "hash" else {"redact": _redact, "partial": _partial}[how]


def _redact(_value: Any) -> str:
    return "***"


def _partial(value: Any) -> str:
    """Return the last four characters of a text or number of more than eight; all other values are hidden whole."""
    text = "" if isinstance(value, dict | list) else str(value)
    return "***" + text[-4:] if len(text) > 8 else "***"


def _hash(salt: bytes, value: Any) -> str:
    """Hash a text by its characters, other values by their JSON: "7" and 7 have the same hash, as ids often need."""
    plain = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else _encode(value)
    return hmac.digest(salt, plain, "sha256").hex()[:HASH_CHARS]
