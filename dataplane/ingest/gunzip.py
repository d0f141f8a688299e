"""Decompress gzip bodies piece by piece, so that neither their output nor their structure can hold up others. Pure."""

import zlib
from collections.abc import Iterator
from typing import Final

from dataplane.ingest.problems import RefusalError

MAX_MEMBERS: Final = 100  # parts of one gzip file (RFC 1952, 2.2); each costs 10 us, even if it is empty
INPUT_BYTES: Final = 16 * 1024  # in one piece: at zlib's slowest, some 200 ns a byte, 3 ms
OUTPUT_BYTES: Final = 64 * 1024
_GZIP: Final = 16 + zlib.MAX_WBITS


def gunzip(body: bytes) -> Iterator[bytes]:
    """Yield the content, at most OUTPUT_BYTES at a time.

    Raises RefusalError `encoding-invalid` for what is not whole gzip, or has more than MAX_MEMBERS parts.
    """
    members = 1
    engine = zlib.decompressobj(_GZIP)
    for start in range(0, len(body), INPUT_BYTES):
        rest = body[start : start + INPUT_BYTES]
        while rest:
            if engine.eof:
                members += 1
                if members > MAX_MEMBERS:
                    raise RefusalError(400, "encoding-invalid", f"needs at most {MAX_MEMBERS} gzip members, got more")
                engine = zlib.decompressobj(_GZIP)
            try:
                yield from _inflate(engine, rest)
            except zlib.error as exc:
                raise _broken() from exc
            rest = engine.unused_data
    if not engine.eof:
        raise _broken()


def _inflate(engine: "zlib._Decompress", data: bytes) -> Iterator[bytes]:
    """Yield what one member has in `data`, up to its end."""
    while True:
        piece = engine.decompress(data, OUTPUT_BYTES)
        yield piece
        data = engine.unconsumed_tail
        if engine.eof or not (data or len(piece) == OUTPUT_BYTES):
            return


def _broken() -> RefusalError:
    return RefusalError(400, "encoding-invalid", "the body says gzip and is not whole gzip")
