"""Faults of a destination after it has read a request. Each writes its answer; False ends the connection."""

import asyncio
import gzip
import itertools
import socket
import struct
import time
from collections import Counter
from collections.abc import Callable
from email.utils import formatdate
from typing import Final

from loadgen.scripted import Behaviour, Received, status

CHUNK: Final = b"x" * 65_536
OK: Final = b"HTTP/1.1 200 OK\r\n"


def throttled(retry_after: str | None) -> Behaviour:
    """Answer 429, with this Retry-After if any."""
    return status(429, "" if retry_after is None else f"retry-after: {retry_after}\r\n")


def redirected(code: int, to: str) -> Behaviour:
    """Answer 3xx with a redirect to another URL."""
    return status(code, f"location: {to}\r\n")


def late(seconds: float) -> Behaviour:
    """Answer 204 after a delay."""
    answer = status(204)

    async def behave(writer: asyncio.StreamWriter, received: Received) -> bool:
        await asyncio.sleep(seconds)
        return await answer(writer, received)

    return behave


async def hang(writer: asyncio.StreamWriter, _: Received) -> bool:
    """Read the request and send nothing, until the client gives up."""
    await _gone(writer)
    return False


async def reset(writer: asyncio.StreamWriter, _: Received) -> bool:
    """Reset the TCP connection instead of an answer."""
    taken: socket.socket = writer.get_extra_info("socket")
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    return False


async def close(_writer: asyncio.StreamWriter, _: Received) -> bool:
    """Close the connection in order, without an answer."""
    return False


async def garbage(writer: asyncio.StreamWriter, _: Received) -> bool:
    """Answer with bytes that are not HTTP."""
    writer.write(b"\x00\x01\x02 this is no answer\r\n\r\n" * 10)
    await writer.drain()
    return False


async def cut(writer: asyncio.StreamWriter, _: Received) -> bool:
    """Answer 200 with a body that ends long before its declared length."""
    writer.write(OK + b"content-length: 1000\r\n\r\nhalf")
    await writer.drain()
    return False


async def trickle(writer: asyncio.StreamWriter, _: Received) -> bool:
    """Send one byte a second, from the status line on: no single read ever times out."""
    for byte in itertools.chain(OK, itertools.repeat(0x78)):
        writer.write(bytes([byte]))
        await writer.drain()
        await asyncio.sleep(1)
    return False


async def crumbs(writer: asyncio.StreamWriter, _: Received) -> bool:
    """Send a whole answer, byte by byte but quickly."""
    for byte in OK + b"content-length: 5\r\n\r\nhello":
        writer.write(bytes([byte]))
        await writer.drain()
        await asyncio.sleep(0)
    return True


async def ten_gigabytes(writer: asyncio.StreamWriter, _: Received) -> bool:
    """Answer 200 with a body of 10 GB, sent as fast as the client reads."""
    writer.write(OK + b"content-length: 10737418240\r\n\r\n")
    return await _endless(writer, CHUNK)


async def endless_chunks(writer: asyncio.StreamWriter, _: Received) -> bool:
    """Answer 200 with a chunked body that never ends."""
    writer.write(OK + b"transfer-encoding: chunked\r\n\r\n")
    return await _endless(writer, b"10000\r\n" + CHUNK + b"\r\n")


async def endless_headers(writer: asyncio.StreamWriter, _: Received) -> bool:
    """Answer 200 and send headers without end."""
    writer.write(OK)
    return await _endless(writer, b"x-more: " + b"y" * 1_000 + b"\r\n")


async def endless_hints(writer: asyncio.StreamWriter, _: Received) -> bool:
    """Answer 103 again and again, never a final status."""
    return await _endless(writer, b"HTTP/1.1 103 Early Hints\r\nlink: </x>; rel=preload\r\n\r\n")


def gzip_bomb(plain_bytes: int) -> Behaviour:
    """Answer 200 with a small body that decompresses to this size."""
    return status(200, "content-encoding: gzip\r\n", gzip.compress(bytes(plain_bytes), 9))


def once(first: Behaviour, then: Behaviour) -> Behaviour:
    """Use one behaviour for the first request of each message, and another from the second on."""
    seen: Counter[str] = Counter()

    async def behave(writer: asyncio.StreamWriter, received: Received) -> bool:
        seen[received.id] += 1
        return await (first if seen[received.id] == 1 else then)(writer, received)

    return behave


def asking_for(header: str, values: Callable[[], set[str]]) -> Behaviour:
    """Answer 204 to a request with one of these values in a header, 401 to any other."""

    async def behave(writer: asyncio.StreamWriter, received: Received) -> bool:
        return await status(204 if received.headers.get(header) in values() else 401)(writer, received)

    return behave


def flapping(up: Behaviour, down: Behaviour, each_s: float) -> Behaviour:
    """Alternate between two behaviours, `down` first."""
    began = time.monotonic()

    async def behave(writer: asyncio.StreamWriter, received: Received) -> bool:
        is_up = int((time.monotonic() - began) / each_s) % 2
        return await (up if is_up else down)(writer, received)

    return behave


async def _endless(writer: asyncio.StreamWriter, data: bytes) -> bool:
    while not writer.is_closing():
        writer.write(data)
        await writer.drain()
    return False


async def _gone(writer: asyncio.StreamWriter) -> None:
    while not writer.transport.is_closing():
        await asyncio.sleep(0.05)


def throttled_until(seconds: float) -> Behaviour:
    """Answer 429 with a Retry-After date this far ahead."""

    async def behave(writer: asyncio.StreamWriter, received: Received) -> bool:
        return await throttled(formatdate(time.time() + seconds, usegmt=True))(writer, received)

    return behave
