"""API keys and tokens as text: a prefix, 160 random bits, a checksum. Pure: the bits come in as an argument.

The checksum lets ingest refuse malformed and mistyped keys without a look-up; it adds no secrecy.
"""

import hashlib
import re
import zlib
from typing import Final

PREFIX: Final = "psk_"  # of keys to sources
URL_PREFIX: Final = "psh_"  # of the secret part of a webhook URL: no key, or it would pass without a signature
RANDOM_BYTES: Final = 20
PREFIX_CHARS: Final = 12  # shown to people: `psk_` and 40 of the 160 bits
_ALPHABET: Final = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford base 32: no i, l, o, u
_SHAPE: Final = re.compile(rf"[a-z]{{3}}_[{_ALPHABET}]{{32}}[{_ALPHABET}]{{6}}")


def key_text(chance: bytes, prefix: str = PREFIX) -> str:
    """Return the key of 20 random bytes. Raises ValueError for another number of bytes.

    prefix: three letters and `_`
    """
    if len(chance) != RANDOM_BYTES:
        raise ValueError(f"a key needs {RANDOM_BYTES} random bytes, got {len(chance)}")
    body = prefix + _base32(int.from_bytes(chance), 32)
    return body + _checksum(body)


def key_is_well_formed(key: str, prefix: str = PREFIX) -> bool:
    """Return True if the text has the format of a key with the prefix, and a correct checksum."""
    return key.startswith(prefix) and _SHAPE.fullmatch(key) is not None and key[-6:] == _checksum(key[:-6])


def key_digest(key: str) -> str:
    """Return the SHA-256 of the whole key, hex; only this digest is stored, published and looked up."""
    return hashlib.sha256(key.encode()).hexdigest()


def _checksum(body: str) -> str:
    return _base32(zlib.crc32(body.encode()) & 0x3FFF_FFFF, 6)


def _base32(number: int, length: int) -> str:
    return "".join(_ALPHABET[number >> shift & 31] for shift in range(5 * (length - 1), -1, -5))
