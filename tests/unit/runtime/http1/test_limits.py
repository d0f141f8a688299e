"""Limits of connections: sizes, times, memory, and how many there are."""

import asyncio

import pytest

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
from tests.support.http1_serving import Gated, Large, Recorder, chunked, post, run, serving, until

CHUNKED = chunked("/c")


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
        (CHUNKED + b"100000\r\n" + b"a" * (1 << 20) + b"\r\n0\r\nx: " + b"y" * 100_000, 400),
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


@pytest.mark.parametrize("sent", [b"", b"POST / HTTP/1.1\r\nhost"])
def test_connection_without_a_request_is_closed(sent: bytes):
    async def story() -> None:
        async with serving(Recorder()) as served:
            client = (await served.connect()).send(sent)
            await until(lambda: bool(served.state.connections))
            await asyncio.sleep(0.05)
            served.pass_time(HEAD_S - 1)
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
        slow = Gated(b"done")
        async with serving(Recorder({"/slow": slow})) as served:
            client = (await served.connect()).send(post("/slow", b"abc") + b"GET / HT")
            await slow.begun.wait()
            served.pass_time(1_000)
            slow.gate.set()
            assert (await client.response()).body == b"done"

    run(story())


def test_client_that_takes_no_response_is_cut_off_and_its_next_requests_wait():
    async def story() -> None:
        large = Large(8_000_000)
        async with serving(Recorder({"/large": large})) as served:
            (await served.connect()).stop_reading().send(post("/large") * 5)
            await until(lambda: large.handled > 0)
            await asyncio.sleep(0.2)
            assert large.handled == 1
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
        wait = Gated()
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
            wait.gate.set()
            assert [(await client.response()).status for client in (first, third)] == [200, 200]

    run(story())


def test_new_connection_replaces_one_that_sends_its_head_slowly():
    async def story() -> None:
        async with serving(Recorder(), 2) as served:
            for _ in range(2):
                (await served.connect()).send(b"GET /")
            await until(lambda: [one._is_in_head for one in served.state.connections] == [True, True])
            assert (await (await served.connect()).send(post("/")).response()).status == 200

    run(story())


def test_replaced_connection_is_closed_at_once_though_its_client_reads_nothing():
    async def story() -> None:
        large = Large(60_000)
        async with serving(Recorder({"/large": large}), 1) as served:
            slow = (await served.connect()).stop_reading()

            async def send_one() -> None:
                wanted = large.handled + 1
                slow.send(post("/large"))
                await until(lambda: large.handled == wanted)

            for _ in range(100):  # until the buffers of the kernel are full
                await send_one()
                await asyncio.sleep(0.01)
                (connection,) = served.state.connections
                if connection._transport.get_write_buffer_size():
                    break
            assert (await (await served.connect()).send(post("/")).response()).status == 200
            await until(lambda: connection not in served.state.connections and connection._parser is None)

    run(story())
