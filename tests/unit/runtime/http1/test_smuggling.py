"""Request smuggling: what our server takes for a request, h11 takes for the same request with the same body.

h11 is an independent parser. A proxy that reads a request differently from us could be used to hide one in a body.
"""

import asyncio
import itertools
import re
from collections.abc import Iterator
from typing import Final

import h11
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.http1_serving import Recorder, Seen, Served, post, run, serving

CRLF: Final = b"\r\n"
STATUS_LINE: Final = re.compile(rb"HTTP/1\.1 \d{3} ")
HIDDEN: Final = b"GET /hidden HTTP/1.1\r\nhost: a\r\n\r\n"
CHUNKS: Final = b"5\r\nhello\r\n0\r\n\r\n"
# Each is ambiguous, or not what RFC 9112 allows: the server must refuse it and close the connection.
REFUSED: Final = {
    "length and chunked": b"content-length: 5\r\ntransfer-encoding: chunked",
    "chunked and length": b"transfer-encoding: chunked\r\ncontent-length: 5",
    "two lengths": b"content-length: 5\r\ncontent-length: 6",
    "the same length twice": b"content-length: 5\r\ncontent-length: 5",
    "a list of lengths": b"content-length: 5, 5",
    "length with a sign": b"content-length: +5",
    "negative length": b"content-length: -5",
    "hexadecimal length": b"content-length: 0x5",
    "length with an underscore": b"content-length: 1_0",
    "length beyond 64 bits": b"content-length: 18446744073709551621",
    "empty length": b"content-length:",
    "length with a space inside": b"content-length: 1 0",
    "length of other digits": b"content-length: \xef\xbc\x95",
    "chunked twice": b"transfer-encoding: chunked, chunked",
    "chunked in two lines": b"transfer-encoding: chunked\r\ntransfer-encoding: chunked",
    "identity, then chunked": b"transfer-encoding: identity\r\ntransfer-encoding: chunked",
    "chunked, then identity": b"transfer-encoding: chunked, identity",
    "identity": b"transfer-encoding: identity",
    "gzip": b"transfer-encoding: gzip, chunked",
    "xchunked": b"transfer-encoding: xchunked",
    "chunkedx": b"transfer-encoding: chunkedx",
    "quoted chunked": b'transfer-encoding: "chunked"',
    "chunked with a parameter": b"transfer-encoding: chunked;a=b",
    "empty encoding": b"transfer-encoding:",
    "encoding with a vertical tab": b"transfer-encoding: \x0bchunked",
    "encoding with NUL": b"transfer-encoding: chunked\x00",
    "space before the colon": b"transfer-encoding : chunked",
    "tab before the colon": b"transfer-encoding\t: chunked",
    "space before the name": b" transfer-encoding: chunked",
    "folded encoding": b"transfer-encoding:\r\n chunked",
    "folded header": b"x: y\r\n transfer-encoding: chunked",
    "bare line feed in front": b"x: y\ntransfer-encoding: chunked",
    "bare carriage return in front": b"x: y\rtransfer-encoding: chunked",
    "line feed behind": b"transfer-encoding: chunked\n",
    "no colon": b"transfer-encoding chunked",
    "no name": b": chunked",
    "NUL in a name": b"x\x00y: z",
    "second host": b"host: b",
    "unknown expectation": b"expect: 200-ok",
}
REFUSED_BODIES: Final = {
    "size with a sign": b"+5\r\nhello\r\n0\r\n\r\n",
    "size with 0x": b"0x5\r\nhello\r\n0\r\n\r\n",
    "size with a space": b"5 \r\nhello\r\n0\r\n\r\n",
    "size with an underscore": b"0_5\r\nhello\r\n0\r\n\r\n",
    "size beyond 64 bits": b"10000000000000005\r\nhello\r\n0\r\n\r\n",
    "no size": b"\r\nhello\r\n0\r\n\r\n",
    "extension ended by a line feed": b"5;x\nhello\r\n0\r\n\r\n",
    "size ended by a line feed": b"5\nhello\r\n0\r\n\r\n",
    "size ended by a carriage return": b"5\rhello\r\n0\r\n\r\n",
    "chunk that is longer than its size": b"5\r\nhelloo\r\n0\r\n\r\n",
    "chunk ended by a line feed": b"5\r\nhello\n0\r\n\r\n",
    "chunk without an end": b"5\r\nhello0\r\n\r\n",
    "trailer with a line feed": b"5\r\nhello\r\n0\r\nx: y\n\r\n",
    "trailer with a length": b"5\r\nhello\r\n0\r\ncontent-length: 9\r\n\r\n",
}


def request_with(headers: bytes, body: bytes = b"") -> bytes:
    return b"POST /first HTTP/1.1\r\nhost: a\r\n" + headers + CRLF + CRLF + body


def h11_reads(data: bytes) -> list[Seen]:
    """Return the complete requests of a connection as h11 reads them, up to its first error."""
    found: list[Seen] = []
    try:
        # h11 refuses empty lines in front of a request line, which servers should ignore (RFC 9112, 2.2).
        while data := data.lstrip(CRLF):
            connection = h11.Connection(h11.SERVER)
            connection.receive_data(data)
            head, body = connection.next_event(), b""
            if not isinstance(head, h11.Request):
                break
            while isinstance(event := connection.next_event(), h11.Data):
                body += event.data
            if not isinstance(event, h11.EndOfMessage):
                break
            x = next((value.decode("latin-1") for name, value in head.headers if name == b"x"), "")
            found.append(Seen(head.method.decode(), head.target.decode("latin-1").partition("?")[0], body, x))
            if connection.their_state is h11.MUST_CLOSE:
                break
            data = connection.trailing_data[0]
    except h11.RemoteProtocolError:
        pass
    return found


async def we_read(served: Served, app: Recorder, data: bytes) -> tuple[list[Seen], bytes]:
    """Return the requests of a connection as our server reads them, and its responses."""
    app.seen.clear()
    client = await served.connect()
    client.send(data)
    client.writer.write_eof()
    responses = await client.rest()
    client.writer.close()
    return list(app.seen), responses


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("body", [b"", b"hello", CHUNKS], ids=["none", "plain", "chunked"])
def test_ambiguous_head_is_refused_and_nothing_behind_it_is_read(name: str, body: bytes):
    async def story() -> None:
        app = Recorder()
        async with serving(app) as served:
            seen, responses = await we_read(served, app, request_with(REFUSED[name], body) + HIDDEN)
        assert seen == []
        assert responses.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 501 ", b"HTTP/1.1 417 "))
        assert len(STATUS_LINE.findall(responses)) == 1
        assert b"connection: close\r\n" in responses

    run(story())


@pytest.mark.parametrize("name", REFUSED_BODIES)
def test_ambiguous_chunk_is_refused_and_nothing_behind_it_is_read(name: str):
    async def story() -> None:
        app = Recorder()
        data = request_with(b"transfer-encoding: chunked", REFUSED_BODIES[name]) + HIDDEN
        async with serving(app) as served:
            seen, responses = await we_read(served, app, post("/before", b"abc") + data)
        assert seen == [Seen("POST", "/before", b"abc")]
        assert len(STATUS_LINE.findall(responses)) == 2
        assert b"HTTP/1.1 400 " in responses

    run(story())


@pytest.mark.parametrize(
    "line",
    [
        b"GET / HTTP/1.1\n", b"GET / HTTP/2.0\r\n", b"GET / HTTP/0.9\r\n", b"GET /\r\n", b"GET / HTTP/1.2\r\n",
        b"GET / http/1.1\r\n", b"get / HTTP/1.1\r\n", b"FOO / HTTP/1.1\r\n", b"GET /a b HTTP/1.1\r\n",
        b"GET /\x00 HTTP/1.1\r\n", b"GET /\xc3\xa9 HTTP/1.1\r\n", b"GET /#a HTTP/1.1\r\n", b"GET a HTTP/1.1\r\n",
        b"GET http:///a HTTP/1.1\r\n", b"GET ftp://a/b HTTP/1.1\r\n", b"CONNECT a:1 HTTP/1.1\r\n",
        b"GET\t/ HTTP/1.1\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    ],
)  # fmt: skip
def test_invalid_request_line_is_refused(line: bytes):
    async def story() -> None:
        app = Recorder()
        async with serving(app) as served:
            seen, responses = await we_read(served, app, line + b"host: a\r\n\r\n" + HIDDEN)
        assert seen == []
        assert responses.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 501 ", b"HTTP/1.1 505 "))
        assert len(STATUS_LINE.findall(responses)) == 1

    run(story())


@pytest.mark.parametrize(
    ("target", "path"),
    [
        ("/a?b=c", "/a"),
        ("http://other/a?b", "/a"),
        ("HTTP://other", "/"),
        ("http://other?/livez", "/"),
        ("*", "*"),
        ("//a//b", "//a//b"),
        ("/%2e", "/%2e"),
    ],
)
def test_forms_of_request_targets(target: str, path: str):
    async def story() -> None:
        app = Recorder()
        async with serving(app) as served:
            await we_read(served, app, f"OPTIONS {target} HTTP/1.1\r\nhost: a\r\n\r\n".encode())
        assert [one.path for one in app.seen] == [path]

    run(story())


@pytest.mark.parametrize(
    ("host", "is_valid"),
    [
        ("", True),
        ("a", True),
        ("a_b.example:8801", True),
        ("a:", True),
        ("192.0.2.1:80", True),
        ("[2001:db8::1]:80", True),
        ("[v1.a:b]", True),
        ("A.example.", True),
        ("%61", True),
        ("a b", False),
        ("a/b", False),
        ("b@a", False),
        ("a:b", False),
        ("a:80:90", False),
        ("[::1", False),
        ("[a b]", False),
        ("é", False),
    ],
)
def test_invalid_host_is_refused(host: str, is_valid: bool):
    async def story() -> None:
        app = Recorder()
        async with serving(app) as served:
            _, responses = await we_read(served, app, f"GET / HTTP/1.1\r\nhost: {host}\r\n\r\n".encode())
        assert responses.startswith(b"HTTP/1.1 200 " if is_valid else b"HTTP/1.1 400 ")
        assert bool(app.seen) is is_valid

    run(story())


VALID: Final = (
    post("/a", b"hello") + HIDDEN,
    request_with(b"transfer-encoding: chunked", CHUNKS) + HIDDEN,
    request_with(b"Transfer-Encoding:\tChunked", b'5;a="b"\r\nhello\r\n0\r\nx: trailer\r\n\r\n') + HIDDEN,
    request_with(b"x: 1\r\nX: 2\r\nCONTENT-LENGTH:05", b"hello") + HIDDEN,
    request_with(b"x-empty:\r\nx: \tz \t\r\ncontent-length: 0") + HIDDEN,
    b"GET /a?b HTTP/1.0\r\nconnection: keep-alive\r\n\r\n",
    post("/a", b"hello", "connection: close") + HIDDEN,
)


@pytest.mark.parametrize("data", VALID)
def test_h11_reads_exactly_the_same_from_valid_requests(data: bytes):
    async def story() -> None:
        app = Recorder()
        async with serving(app) as served:
            ours, _ = await we_read(served, app, data)
        assert ours
        assert ours == h11_reads(data)

    run(story())


def mutations() -> Iterator[bytes]:
    """Yield requests with each byte in each place of the headers that say where a body ends."""
    for byte in range(256):
        odd = bytes([byte])
        for name, value in ((b"transfer-encoding", b"chunked"), (b"content-length", b"5")):
            for line in (
                odd + name + b": " + value,
                name[:5] + odd + name[5:] + b": " + value,
                name + odd + b": " + value,
                name + b":" + odd + value,
                name + b": " + value[:1] + odd + value[1:],
                name + b": " + value + odd,
                b"x: y" + odd + name + b": " + value,
                b"x: y\r" + odd + name + b": " + value,
                name + b": " + value + b"\r" + odd,
            ):
                yield request_with(line, CHUNKS) + HIDDEN
                yield request_with(line + CRLF + b"content-length: 5", CHUNKS) + HIDDEN
        for size in (odd + b"5", b"5" + odd, b"5;" + odd, b"5\r" + odd):
            yield request_with(b"transfer-encoding: chunked", size + b"\r\nhello\r\n0\r\n\r\n") + HIDDEN


def test_h11_reads_the_same_requests_from_thousands_of_mutated_ones():
    async def story() -> None:
        app, taken, total = Recorder(), 0, 0
        async with serving(app) as served:
            for data in mutations():
                ours, _ = await we_read(served, app, data)
                theirs = h11_reads(data)
                assert ours == theirs[: len(ours)], data
                taken, total = taken + bool(ours), total + 1
        assert total > 10_000
        assert total / 100 < taken < total / 2, "most are refused, but not all"

    run(story())


FRAGMENTS: Final = [
    b"GET / HTTP/1.1", b"POST /a HTTP/1.1", b"POST /b HTTP/1.0", b"host: a", b"content-length: 5", b"content-length: 0",
    b"transfer-encoding: chunked", b"connection: close", b"connection: keep-alive", b"upgrade: h2c",
    b"connection: upgrade", b"expect: 100-continue", b"x: y", CRLF, CRLF + CRLF, b"\n", b" ", b"hello", b"5", b"0",
    b";x", b"5\r\nhello\r\n", b"0\r\n\r\n", HIDDEN,
]  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(FRAGMENTS), min_size=1, max_size=14), st.booleans())
def test_h11_reads_the_same_requests_from_random_fragments(fragments: list[bytes], is_in_lines: bool):
    data = (CRLF if is_in_lines else b"").join(fragments) + CRLF + CRLF

    async def story() -> None:
        app = Recorder()
        async with serving(app) as served:
            ours, _ = await we_read(served, app, data)
        assert ours == h11_reads(data)[: len(ours)]

    run(story())


def test_requests_are_read_alike_wherever_they_are_split():
    data = post("/1", b"abc") + request_with(b"transfer-encoding: chunked", CHUNKS) + HIDDEN

    async def story() -> None:
        app = Recorder()
        async with serving(app) as served:
            for at, then in itertools.combinations(range(1, len(data), 9), 2):
                app.seen.clear()
                client = await served.connect()
                for piece in (data[:at], data[at:then], data[then:]):
                    client.send(piece)
                    await asyncio.sleep(0)
                client.writer.write_eof()
                await client.rest()
                assert [one.path for one in app.seen] == ["/1", "/first", "/hidden"], (at, then)
                assert [one.body for one in app.seen] == [b"abc", b"hello", b""]

    run(story())
