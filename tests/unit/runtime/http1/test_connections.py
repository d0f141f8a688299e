"""Connections of the HTTP/1.1 server: order, responses before the end of a body, ends of a connection."""

import asyncio
import gc
import weakref

import pytest

from dataplane.runtime.web.errors import ClientGoneError, HttpError
from dataplane.runtime.web.http1.connection import SLICE_BYTES
from dataplane.runtime.web.http1.request import BUFFER_BYTES, Request
from tests.support.http1_serving import Recorder, Seen, chunked, post, run, serving, until

CHUNKED = chunked("/c")


def test_requests_of_a_connection_get_their_responses_in_order():
    async def story() -> None:
        app = Recorder()
        async with serving(app) as served:
            client = await served.connect()
            for number in range(3):
                response = await client.send(post(f"/{number}", b"x" * number)).response()
                assert (response.status, response.headers["x-path"], response.body) == (
                    200, f"/{number}", b"x" * number,
                )  # fmt: skip
                assert "connection" not in response.headers
                assert response.headers["date"].endswith("GMT")

    run(story())


@pytest.mark.parametrize("size", [1, 7, 100, 1_000_000], ids=["byte by byte", "7", "100", "at once"])
def test_pipelined_requests_are_handled_one_after_the_other_however_they_arrive(size: int):
    async def story() -> None:
        app = Recorder()
        data = b"".join(post(f"/{number}", b"b" * number) for number in range(20))
        data += CHUNKED + b"3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nt: x\r\n\r\n" + post("/last")
        async with serving(app) as served:
            client = await served.connect()
            for start in range(0, len(data), size):
                client.send(data[start : start + size])
                if size < 100:
                    await client.writer.drain()
            statuses = [(await client.response()).status for _ in range(22)]
        assert statuses == [200] * 22
        assert [one.path for one in app.seen] == [*(f"/{number}" for number in range(20)), "/c", "/last"]
        assert [len(one.body) for one in app.seen] == [*range(20), 5, 0]

    run(story())


def test_thousands_of_pipelined_requests_are_held_unparsed_and_none_is_lost():
    async def story() -> None:
        app, count = Recorder(), 3_000
        async with serving(app) as served:
            client = await served.connect()
            client.send(b"".join(post(f"/{number}") for number in range(count)))
            client.writer.write_eof()
            longest = 0
            for number in range(count):
                longest = max([longest, *(len(one._queue) for one in served.state.connections)])
                assert (await client.response()).headers["x-path"] == f"/{number}"
            assert await client.rest() == b""
        assert 0 < longest <= SLICE_BYTES / len(post("/1"))

    run(story())


def test_body_larger_than_all_buffers_arrives_whole():
    async def story() -> None:
        app, body = Recorder(), bytes(range(256)) * 20_000
        async with serving(app) as served:
            client = await served.connect()
            response = await client.send(post("/", body)).response()
        assert response.body == body

    run(story())


def test_reading_pauses_while_the_application_does_not_read_the_body():
    async def story() -> None:
        gate, requests = asyncio.Event(), list[Request]()

        async def late(request: Request) -> None:
            requests.append(request)
            await gate.wait()
            request.respond(200, [], b"%d" % len(await request.body()))

        body = b"x" * 5_000_000
        async with serving(Recorder({"/late": late})) as served:
            client = (await served.connect()).send(post("/late", body))
            await until(lambda: bool(requests))
            await asyncio.sleep(0.3)
            held = requests[0].buffered
            gate.set()
            assert (await client.response()).body == b"5000000"
        assert BUFFER_BYTES < held < BUFFER_BYTES + 1_000_000

    run(story())


async def refuse(request: Request) -> None:
    request.respond(401, [], b"no")


def test_refused_request_whose_body_was_received_keeps_its_connection():
    async def story() -> None:
        async with serving(Recorder({"/no": refuse})) as served:
            client = await served.connect()
            assert (await client.send(post("/no", b"x" * 100)).response()).status == 401
            assert (await client.send(post("/")).response()).status == 200

    run(story())


def test_response_before_the_end_of_a_body_is_readable_though_the_client_still_sends():
    async def story() -> None:
        app = Recorder({"/no": refuse})
        async with serving(app) as served:
            client = await served.connect()
            client.send(b"POST /no HTTP/1.1\r\nhost: a\r\ncontent-length: 9000000\r\n\r\n")
            for _ in range(20):
                client.send(b"x" * 100_000)
                await asyncio.sleep(0.005)
            response = await client.response()
            assert (response.status, response.headers["connection"]) == (401, "close")
            client.send(post("/smuggled") * 10)
            client.writer.write_eof()
            assert await client.rest() == b""
            await until(lambda: not served.state.connections)
        assert app.seen == []

    run(story())


def test_client_that_expects_it_gets_100_continue_when_the_body_is_read():
    async def story() -> None:
        async with serving(Recorder({"/no": refuse})) as served:
            client = await served.connect()
            client.send(b"POST / HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\ncontent-length: 3\r\n\r\n")
            assert await client.reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
            assert (await client.send(b"abc").response()).body == b"abc"
            client.send(b"POST /no HTTP/1.1\r\nhost: a\r\nexpect: 100-Continue\r\ncontent-length: 3\r\n\r\n")
            assert (await client.response()).status == 401
            second = (await served.connect()).send(post("/", b"abc", "expect: 100-continue"))
            assert (await second.response()).status == 200, "it did not wait"

    run(story())


@pytest.mark.parametrize("framing", ["content-length: 3", "transfer-encoding: chunked"])
def test_request_to_upgrade_is_served_in_http_1_with_its_body(framing: str):
    async def story() -> None:
        app = Recorder()
        body = b"3\r\nabc\r\n0\r\n\r\n" if "chunked" in framing else b"abc"
        head = f"POST /up HTTP/1.1\r\nhost: a\r\nconnection: Upgrade\r\nupgrade: h2c\r\n{framing}\r\n\r\n".encode()
        get = b"GET /get HTTP/1.1\r\nhost: a\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\r\n"
        for pieces in ([head + body + get + head + body], [head, body, get, head, body]):
            async with serving(app) as served:
                client = await served.connect()
                for piece in pieces:
                    client.send(piece)
                    await asyncio.sleep(0.02)
                assert [(await client.response()).body for _ in range(3)] == [b"abc", b"", b"abc"]
        assert app.seen == [Seen("POST", "/up", b"abc"), Seen("GET", "/get", b""), Seen("POST", "/up", b"abc")] * 2

    run(story())


@pytest.mark.parametrize(
    ("head", "is_kept"),
    [
        ("GET / HTTP/1.1\r\nhost: a", True),
        ("GET / HTTP/1.1\r\nhost: a\r\nconnection: close", False),
        ("GET / HTTP/1.1\r\nhost: a\r\nconnection: keep-alive, Close", False),
        ("GET / HTTP/1.0", False),
        ("GET / HTTP/1.0\r\nconnection: keep-alive", True),
    ],
)
def test_connection_is_kept_as_the_client_wants(head: str, is_kept: bool):
    async def story() -> None:
        async with serving(Recorder()) as served:
            client = (await served.connect()).send(head.encode() + b"\r\n\r\n")
            response = await client.response()
            assert (response.headers.get("connection") == "close") is not is_kept
            if is_kept:
                assert (response.headers.get("connection") == "keep-alive") is ("1.0" in head)
                assert (await client.send(post("/")).response()).status == 200
            else:
                assert await client.send(b"\r\nGET / HTTP/1.1\r\n").rest() == b""

    run(story())


def test_client_that_closes_its_half_gets_the_responses_of_its_requests():
    async def story() -> None:
        async with serving(Recorder()) as served:
            client = (await served.connect()).send(post("/1") + post("/2"))
            client.writer.write_eof()
            assert [(await client.response()).headers["x-path"] for _ in range(2)] == ["/1", "/2"]
            assert await client.rest() == b""

    run(story())


@pytest.mark.parametrize("rest", [post("/x", b"abc")[:-1], b"POST / HTTP", CHUNKED + b"3\r\na"])
def test_client_that_closes_its_half_within_a_request_gets_the_response_of_the_one_before(rest: bytes):
    async def story() -> None:
        async def slow(request: Request) -> None:
            await asyncio.sleep(0.05)
            request.respond(200, [], await request.body())

        app = Recorder({"/slow": slow})
        async with serving(app) as served:
            client = (await served.connect()).send(post("/slow", b"a" * 100_000) + post("/2") + rest)
            client.writer.write_eof()
            assert [len((await client.response()).body) for _ in range(2)] == [100_000, 0]
            assert await client.rest() == b""
        assert [one.path for one in app.seen] == ["/2"]

    run(story())


@pytest.mark.parametrize("leaves", ["half", "whole"])
def test_client_that_leaves_before_the_end_of_its_body_ends_the_request(leaves: str):
    async def story() -> None:
        gone = asyncio.Event()

        async def read(request: Request) -> None:
            try:
                await request.body()
            except ClientGoneError:
                gone.set()
                raise

        async with serving(Recorder({"/read": read})) as served:
            client = (await served.connect()).send(post("/read", b"abc")[:-1])
            await asyncio.sleep(0.02)
            if leaves == "half":
                client.writer.write_eof()
            else:
                client.writer.transport.abort()
            await asyncio.wait_for(gone.wait(), 5)
            await until(lambda: not served.state.connections)

    run(story())


@pytest.mark.parametrize("fault", ["raises", "is silent", "sends a line break"])
def test_application_without_a_response_ends_the_connection(fault: str):
    async def story() -> None:
        async def act(request: Request) -> None:
            if fault == "raises":
                raise RuntimeError("of the test")
            if fault == "sends a line break":
                request.respond(200, [("x", "a\r\nset-cookie: b")], b"")

        async with serving(Recorder({"/act": act})) as served:
            client = (await served.connect()).send(post("/act"))
            with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
                await client.response()
            assert (await (await served.connect()).send(post("/")).response()).status == 200

    run(story())


def test_response_to_head_and_204_have_no_body():
    async def story() -> None:
        async def nothing(request: Request) -> None:
            request.respond(204, [], b"")

        async with serving(Recorder({"/nothing": nothing})) as served:
            client = (await served.connect()).send(b"HEAD /x HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\n\r\nabc")
            assert (await client.response("HEAD")).headers["content-length"] == "3"
            response = await client.send(post("/nothing")).response()
            assert (response.status, "content-length" in response.headers) == (204, False)
            assert (await client.send(post("/", b"1")).response()).body == b"1"

    run(story())


HEADS = {
    505: b"GET / HTTP/2.0\r\nhost: a\r\n\r\n",
    417: post("/", b"", "expect: 200-ok"),
    431: post("/", b"", *["x: y"] * 200),
}


@pytest.mark.parametrize("status", HEADS)
@pytest.mark.parametrize("place", ["alone", "behind an upgrade", "held behind one that responds to an error"])
def test_error_of_a_head_has_its_status_in_any_place(status: int, place: str):
    async def story() -> None:
        async def refusing(request: Request) -> None:
            try:
                raise ValueError("of the test")
            except ValueError:
                request.respond(401, [], b"")

        async with serving(Recorder({"/no": refusing})) as served:
            client = await served.connect()
            if place == "behind an upgrade":
                client.send(post("/", b"abc", "connection: upgrade", "upgrade: h2c") + HEADS[status])
                assert (await client.response()).status == 200
            elif place != "alone":
                client.send(post("/no") * (SLICE_BYTES // 20) + HEADS[status])
                assert {(await client.response()).status for _ in range(SLICE_BYTES // 20)} == {401}
            else:
                client.send(HEADS[status])
            assert (await client.response()).status == status

    run(story())


def test_header_values_are_utf_8_or_latin_1_and_an_empty_expectation_is_none():
    async def story() -> None:
        app = Recorder()
        async with serving(app) as served:
            client = await served.connect()
            for value in ("é€".encode(), b"\xe9"):
                client.send(b"GET / HTTP/1.1\r\nhost: a\r\nexpect:\r\nx: " + value + b"\r\n\r\n")
                assert (await client.response()).status == 200
        assert [one.x for one in app.seen] == ["é€", "é"]

    run(story())


@pytest.mark.parametrize("ends", ["reset", "refused", "invalid"])
def test_body_that_does_not_arrive_is_freed_without_the_garbage_collector(ends: str):
    async def story() -> None:
        requests: list[weakref.ref[Request]] = []

        async def read(request: Request) -> None:
            requests.append(weakref.ref(request))
            if ends == "refused":
                request.respond(401, [], b"")
                return
            try:
                await request.body()
            except HttpError as error:
                request.respond(error.status, [], b"")

        async with serving(Recorder({"/read": read})) as served:
            gc.disable()
            try:
                client = (await served.connect()).send(chunked("/read") + b"f0000\r\n" + b"x" * 0xEFFFF)
                await until(lambda: bool(requests))
                await asyncio.sleep(0.05)
                if ends == "reset":
                    client.writer.transport.abort()
                elif ends == "invalid":
                    client.send(b"xy")
                await until(lambda: requests[0]() is None)
            finally:
                gc.enable()
            assert bool(served.state.connections) is (ends != "reset"), "it lingers, without the body"

    run(story())


def test_closed_connection_is_freed_without_the_garbage_collector():
    async def story() -> None:
        async with serving(Recorder()) as served:
            client = (await served.connect()).send(post("/"))
            await client.response()
            (connection,) = served.state.connections
            found = weakref.ref(connection)
            del connection
            client.writer.close()
            await until(lambda: not served.state.connections)
            gc.disable()
            try:
                await until(lambda: found() is None)
            finally:
                gc.enable()

    run(story())
