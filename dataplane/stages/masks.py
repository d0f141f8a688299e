"""Masks: what is left of a value that must not be seen."""

import hmac
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import msgspec

HASH_CHARS: Final = 32  # 128 bits of HMAC-SHA256: no two values of a tenant meet by chance
_encode = msgspec.json.Encoder(order="deterministic", decimal_format="number").encode


def masker(how: str, salt: bytes) -> Callable[[Any], str]:
    """The mask of the spec's name; only `hash` uses the salt."""
    return partial(_hash, salt) if how == "hash" else {"redact": _redact, "partial": _partial}[how]


def _redact(_value: Any) -> str:
    return "***"


def _partial(value: Any) -> str:
    """Return the last four characters of a text or number long enough that they tell little; of all else nothing."""
    text = "" if isinstance(value, dict | list) else str(value)
    return "***" + text[-4:] if len(text) > 8 else "***"


def _hash(salt: bytes, value: Any) -> str:
    """Text by its characters, all else by its JSON: the text "7" and the number 7 have one hash, as ids often do."""
    plain = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else _encode(value)
    return hmac.digest(salt, plain, "sha256").hex()[:HASH_CHARS]
