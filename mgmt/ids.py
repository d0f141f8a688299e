"""Row ids: a prefix that names the kind of row, and a time-ordered random part; and ids that requests name."""

import functools
import os
import time
from collections.abc import Callable

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford base 32: no i, l, o, u


def new_id(prefix: str) -> str:
    """Return `<prefix>_` and 20 characters of base 32: 48 bits of Unix milliseconds, 52 random bits."""
    number = time.time_ns() // 1_000_000 << 52 | int.from_bytes(os.urandom(7)) >> 4
    return f"{prefix}_" + "".join(_ALPHABET[number >> shift & 31] for shift in range(95, -1, -5))


def id_maker(prefix: str) -> Callable[[], str]:
    """Return the default of a primary key; a partial, because migrations can serialize one."""
    return functools.partial(new_id, prefix)


def storable(text: str) -> str:
    """Replace U+0000, which Postgres cannot even compare, by U+FFFD, which no id or name contains."""
    return text.replace("\x00", "\ufffd")
