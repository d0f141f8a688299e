"""Limits on what is asked without signing in: sign-ins by name and address, receipts by address. Never a delay."""

import hashlib
from typing import Final

from django.core.cache import cache

# Ten for one name keep a guesser out; a hundred for one address leave room for an office behind one router.
PER_NAME: Final = 10
PER_ADDRESS: Final = 100
WINDOW_S: Final = 300
RECEIPTS_PER_ADDRESS: Final = 60  # each looks into topics, for a second and a half if the id is made up


def too_many_sign_ins(*, name: str, address: str) -> bool:
    """Count one attempt; True once its name or its address is over the limit of the last five minutes."""
    by_name = _count("name", name.strip().lower())
    by_address = _count("address", address)
    return by_name > PER_NAME or by_address > PER_ADDRESS


def forget_sign_ins(*, name: str) -> None:
    """A success clears its name."""
    cache.delete(_key("name", name.strip().lower()))


def too_many_receipts(*, address: str) -> bool:
    """Count one receipt; True once its address is over the limit of the last five minutes."""
    return _count("receipt", address) > RECEIPTS_PER_ADDRESS


def _count(kind: str, value: str) -> int:
    key = _key(kind, value)
    cache.add(key, 0, WINDOW_S)
    try:
        return cache.incr(key)
    except ValueError:  # it ran out between the two calls
        return 1


def _key(kind: str, value: str) -> str:
    return f"sign-in/{kind}/{hashlib.sha256(value.encode()).hexdigest()}"
