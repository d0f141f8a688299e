"""Connections of the HTTP/1.1 server: order, limits of size and time, early responses, the drain."""

import asyncio
import gc
import weakref
from collections.abc import Callable

import pytest

from dataplane.runtime.web.errors import ClientGoneError
from dataplane.runtime.web.http1.connection import (
    BODY_S,
    HEAD_S,
    IDLE_S,
    LINGER_S,
    MAX_HEAD_BYTES,
    SLICE_BYTES,
    UNREAD_S,
)
from dataplane.runtime.web.http1.head import MAX_HEADERS
from dataplane.runtime.web.http1.request import BUFFER_BYTES, Request
from tests.support.http1_serving import Recorder, Seen, post, run, serving

CHUNKED = b"POST /c HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n"


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not holds():
            await asyncio.sleep(0.005)


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


# -- responses before the body is complete -----------------------------------------------------------------------------


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


# -- ends of a connection ----------------------------------------------------------------------------------------------


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


# -- limits ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GET /" + b"a" * 2 * MAX_HEAD_BYTES + b" HTTP/1.1\r\nhost: a\r\n\r\n", 431),
        (b"GET / HTTP/1.1\r\nhost: a\r\nx: " + b"a" * 2 * MAX_HEAD_BYTES, 431),
        (b"GET / HTTP/1.1\r\nhost: a\r\n" + b"x" * 2 * MAX_HEAD_BYTES, 431),
        (b"GET / HTTP/1.1\r\nhost: a\r\n" + b"x: y\r\n" * MAX_HEADERS + b"\r\n", 431),
        (b"GET / HTTP/1.1\r\nhost: a\r\n" + b"x: y\r\n" * (MAX_HEADERS - 1) + b"\r\n", 200),
        (b"GET / HTTP/1.1\r\nhost: a\r\nx: " + b"a" * (MAX_HEAD_BYTES - 2 * SLICE_BYTES) + b"\r\n\r\n", 200),
        (CHUNKED + b"1;" + b"a" * 200_000, 400),
        (CHUNKED + b"1\r\na\r\n0\r\n" + b"x: y\r\n" * 50_000, 400),
        (CHUNKED + b"1\r\na\r\n" * 100_000 + b"0\r\n\r\n", 200),
    ],
)
def test_head_and_framing_are_limited(request_: bytes, status: int):
    async def story() -> None:
        app = Recorder()
        async with serving(app) as served:
            client = (await served.connect()).send(request_)
            assert (await client.response()).status == status
            if status != 200:
                client.writer.write_eof()
                assert await client.rest() == b""
                assert app.seen == []

    run(story())


@pytest.mark.parametrize(("sent", "limit_s"), [(b"", HEAD_S), (b"POST / HTTP/1.1\r\nhost", HEAD_S)])
def test_connection_without_a_request_is_closed(sent: bytes, limit_s: float):
    async def story() -> None:
        async with serving(Recorder()) as served:
            client = (await served.connect()).send(sent)
            await until(lambda: bool(served.state.connections))
            await asyncio.sleep(0.05)
            served.pass_time(limit_s - 1)
            await asyncio.sleep(0.05)
            assert served.state.connections
            served.pass_time(2)
            assert await client.rest() == b""

    run(story())


def test_idle_connection_is_closed_later_than_load_balancers_do():
    async def story() -> None:
        async with serving(Recorder()) as served:
            client = (await served.connect()).send(post("/"))
            await client.response()
            served.pass_time(IDLE_S - 1)
            assert (await client.send(post("/")).response()).status == 200
            served.pass_time(IDLE_S + 1)
            assert await client.rest() == b""

    run(story())


@pytest.mark.parametrize("trickles", [False, True])
def test_slow_body_gets_408(trickles: bool):
    async def story() -> None:
        async with serving(Recorder()) as served:
            client = (await served.connect()).send(CHUNKED if trickles else post("/", b"abc")[:-1])
            await asyncio.sleep(0.05)
            for _ in range(int(BODY_S) - 1):
                served.pass_time(1)
                if trickles:
                    client.send(b"1\r\na\r\n")
                    await asyncio.sleep(0.002)
            served.pass_time(2)
            response = await client.response()
            assert (response.status, response.headers["connection"]) == (408, "close")

    run(story())


def test_handler_may_take_longer_than_any_limit_of_the_client():
    async def story() -> None:
        gate, begun = asyncio.Event(), asyncio.Event()

        async def slow(request: Request) -> None:
            await request.body()
            begun.set()
            await gate.wait()
            request.respond(200, [], b"done")

        async with serving(Recorder({"/slow": slow})) as served:
            client = (await served.connect()).send(post("/slow", b"abc") + b"GET / HT")
            await begun.wait()
            served.pass_time(1_000)
            gate.set()
            assert (await client.response()).body == b"done"

    run(story())


def test_client_that_takes_no_response_is_cut_off_and_its_next_requests_wait():
    async def story() -> None:
        handled = 0

        async def large(request: Request) -> None:
            nonlocal handled
            handled += 1
            request.respond(200, [], b"x" * 8_000_000)

        async with serving(Recorder({"/large": large})) as served:
            client = (await served.connect()).send(post("/large") * 5)
            client.writer.transport.pause_reading()  # type: ignore[attr-defined]
            await until(lambda: handled > 0)
            await asyncio.sleep(0.2)
            assert handled == 1
            served.pass_time(UNREAD_S + 1)
            await until(lambda: not served.state.connections)

    run(story())


def test_client_that_sends_on_after_a_refusal_is_cut_off():
    async def story() -> None:
        async with serving(Recorder()) as served:
            client = (await served.connect()).send(b"GET / HTTP/9\r\n")
            assert (await client.response()).status == 400
            await asyncio.sleep(0.05)
            assert served.state.connections, "the client may not have read the response"
            served.pass_time(LINGER_S + 1)
            await until(lambda: not served.state.connections)

    run(story())


def test_new_connection_replaces_the_longest_idle_one_and_is_refused_if_none_is_idle():
    async def story() -> None:
        gate = asyncio.Event()

        async def wait(request: Request) -> None:
            await gate.wait()
            request.respond(200, [], b"")

        async with serving(Recorder({"/wait": wait}), 2) as served:
            first, second = await served.connect(), await served.connect()
            for client in (first, second, first):
                await client.send(post("/")).response()
            third = await served.connect()
            assert await second.rest() == b""
            for client in (first, third):
                client.send(post("/wait"))
            await until(lambda: not served.state.idle)
            with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
                await (await served.connect()).send(post("/")).response()
            assert served.state.refused == 1
            gate.set()
            assert [(await client.response()).status for client in (first, third)] == [200, 200]

    run(story())


# -- drain -------------------------------------------------------------------------------------------------------------


def test_drain_finishes_requests_and_serves_those_just_sent(monkeypatch: pytest.MonkeyPatch):
    async def story() -> None:
        gate, begun = asyncio.Event(), asyncio.Event()

        async def slow(request: Request) -> None:
            begun.set()
            await gate.wait()
            request.respond(200, [], await request.body())

        async with serving(Recorder({"/slow": slow})) as served:
            busy = (await served.connect()).send(post("/slow", b"abc"))
            idle, late = await served.connect(), await served.connect()
            for client in (idle, late):
                await client.send(post("/")).response()
            await begun.wait()
            draining = asyncio.create_task(served.server.drain(20))
            await asyncio.sleep(0.1)
            with pytest.raises(ConnectionRefusedError):
                await served.connect()
            response = await late.send(post("/late")).response()
            assert (response.status, response.headers["connection"]) == (200, "close")
            assert await idle.rest() == b""
            gate.set()
            response = await busy.response()
            assert (response.body, response.headers["connection"]) == (b"abc", "close")
            await asyncio.wait_for(draining, 5)
            assert not served.state.connections

    run(story())


def test_drain_ends_at_its_limit():
    async def story() -> None:
        async def never(_: Request) -> None:
            await asyncio.sleep(1_000)

        async with serving(Recorder({"/never": never})) as served:
            client = (await served.connect()).send(post("/never"))
            await until(lambda: bool(served.state.connections) and not served.state.idle)
            await asyncio.wait_for(served.server.drain(0.2), 5)
            with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
                await client.response()

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
