"""The HTTP/1.1 server: its listener and its drain."""

import asyncio
import socket

import pytest

from dataplane.runtime.web.http1 import connection as module
from dataplane.runtime.web.http1 import server as server_module
from dataplane.runtime.web.http1.connection import BODY_S, DRAIN_LINGER_S, IDLE_S
from dataplane.runtime.web.http1.request import Request
from dataplane.runtime.web.http1.server import HttpServer
from dataplane.runtime.web.sockets import SEND_BUFFER_BYTES, UNREAD_MS
from tests.support.http1_serving import Gated, Large, Recorder, post, run, serving, until


def test_deadlines_are_checked_while_the_server_runs(monkeypatch: pytest.MonkeyPatch):
    async def story() -> None:
        monkeypatch.setattr(server_module, "SWEEP_S", 0.05)
        monkeypatch.setattr(module, "HEAD_S", 0.2)
        async with serving(Recorder()) as served:
            idle, kept = await served.connect(), await served.connect()
            date = (await kept.send(post("/")).response()).headers["date"]
            assert await idle.rest() == b""
            await asyncio.sleep(1)
            assert (await kept.send(post("/")).response()).headers["date"] != date
            assert await kept.send(b"GET /").rest() == b"", "the next head has the same limit"

    run(story())


def test_limits_are_those_that_senders_and_proxies_expect():
    assert IDLE_S > 60, "of nginx and AWS: they must close an idle connection first"
    assert BODY_S >= 30
    assert server_module.GRACE_S <= 1


def test_several_servers_listen_on_one_port_with_bounded_send_buffers():
    async def story() -> None:
        async with serving(Recorder()) as first:
            other = HttpServer(Recorder())
            assert await other.start("127.0.0.1", first.port) == first.port
            for number in range(100):
                await first.connect()
                if other.connections and first.server.connections:
                    break
                assert number < 99, "the kernel distributes connections"
            (connection, *_) = first.state.connections
            accepted = connection._transport.get_extra_info("socket")
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == UNREAD_MS
            assert accepted.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) == 2 * SEND_BUFFER_BYTES
            await other.drain(0)

    run(story())


def test_wildcard_address_of_ipv6_accepts_ipv4_too():
    async def story() -> None:
        server = HttpServer(Recorder())
        port = await server.start("::", 0)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(post("/"))
        assert (await reader.readline()) == b"HTTP/1.1 200 OK\r\n"
        writer.transport.abort()
        await server.drain(1)

    run(story())


def test_limit_of_open_files_lowers_that_of_connections(monkeypatch: pytest.MonkeyPatch):
    async def story() -> None:
        monkeypatch.setattr(server_module, "allow_open_files", lambda _: server_module.OTHER_FILES + 10)
        assert HttpServer(Recorder())._state.max_connections == 10

    run(story())


def test_drain_finishes_requests_and_serves_those_just_sent():
    async def story() -> None:
        slow = Gated()
        async with serving(Recorder({"/slow": slow})) as served:
            busy = (await served.connect()).send(post("/slow", b"abc"))
            idle, late = await served.connect(), await served.connect()
            for client in (idle, late):
                await client.send(post("/")).response()
            await slow.begun.wait()
            draining = asyncio.create_task(served.server.drain(20))
            await asyncio.sleep(0.1)
            with pytest.raises(ConnectionRefusedError):
                await served.connect()
            response = await late.send(post("/late")).response()
            assert (response.status, response.headers["connection"]) == (200, "close")
            assert await idle.rest() == b""
            slow.gate.set()
            response = await busy.response()
            assert (response.body, response.headers["connection"]) == (b"abc", "close")
            await asyncio.wait_for(draining, 5)
            assert not served.state.connections

    run(story())


def test_drain_waits_for_a_request_whose_client_is_gone():
    async def story() -> None:
        ended = False

        async def slow(_: Request) -> None:
            nonlocal ended
            await asyncio.sleep(0.3)
            ended = True

        async with serving(Recorder({"/slow": slow})) as served:
            client = (await served.connect()).send(post("/slow"))
            await until(lambda: served.state.running == 1)
            client.writer.transport.abort()
            await until(lambda: not served.state.connections)
            await served.server.drain(20)
            assert ended

    run(story())


def test_drain_sends_the_whole_response_to_a_client_that_pipelines_and_reads_late():
    async def story() -> None:
        large = Gated(b"x" * 300_000)
        async with serving(Recorder({"/large": large})) as served:
            client = (await served.connect()).stop_reading().send(post("/large") * 300)
            await until(lambda: served.state.running == 1)
            draining = asyncio.create_task(served.server.drain(20))
            await asyncio.sleep(0)
            large.gate.set()
            await asyncio.sleep(0.5)
            client.continue_reading()
            assert len((await client.response()).body) == 300_000
            client.writer.close()
            await draining

    run(story())


def test_drain_lets_a_client_read_an_error_that_it_gets_while_it_sends():
    async def story() -> None:
        async with serving(Recorder()) as served:
            client = (await served.connect()).stop_reading().send(b"GET / HTTP/9\r\n")
            await until(lambda: any(one._lingers for one in served.state.connections))
            draining = asyncio.create_task(served.server.drain(20))
            for _ in range(10):
                await asyncio.sleep(0.1)
                client.send(b"x" * 1_000)
            client.continue_reading()
            assert (await client.response()).status == 400
            client.writer.close()
            await asyncio.wait_for(draining, 5)

    run(story())


def test_drain_lets_a_client_read_a_large_response_slowly():
    async def story() -> None:
        async with serving(Recorder({"/large": Large(8_000_000)})) as served:
            client = (await served.connect()).stop_reading().send(post("/large", b"", "connection: close"))
            await until(lambda: any(one._lingers for one in served.state.connections))
            draining = asyncio.create_task(served.server.drain(20))
            await asyncio.sleep(0)
            served.pass_time(DRAIN_LINGER_S + 1)
            client.continue_reading()
            assert len((await client.response()).body) == 8_000_000
            client.writer.close()
            await asyncio.wait_for(draining, 5)

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
